"""Scenes as data: what is drawn where, and what the caption says about it.

Lengths are in units, of which a pixel has UNITS; so they are whole numbers, and the same on every machine.
"""

from dataclasses import dataclass

from heedful.data.shapes.figures import Figure

SIDE = 64  # pixels of a picture, in width and in height
UNITS = 4  # of a pixel: a picture is drawn larger by this factor, and then reduced

Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels; right and bottom are the first pixels outside


@dataclass(frozen=True, slots=True)
class Object:
    """An object in a picture: a figure with the middle and the radius of its outline, in units."""

    figure: Figure
    x: int
    y: int
    radius: int

    @property
    def outline(self) -> list[tuple[int, int]]:
        """The corners of the outline, in units."""
        corners = self.figure.shape.outline
        return [(self.x + round(self.radius * x), self.y + round(self.radius * y)) for x, y in corners]

    @property
    def box(self) -> Box:
        """The smallest box that holds all pixels with some of the object."""
        across, down = zip(*self.outline, strict=True)
        return min(across) // UNITS, min(down) // UNITS, max(across) // UNITS + 1, max(down) // UNITS + 1


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture with one to three objects, and where they are.

    Attributes:
        objects: The objects, in the order in which the English caption names them.
        where: Of a single object, its place: a key of PLACES in `captions`. Of two or three, the relation of the
            first to the second: a key of RELATIONS there.
        third: The relation of the third object to the first two, a key of RELATIONS; "" if there is none.
        background: The red, green and blue around the objects.
    """

    objects: tuple[Object, ...]
    where: str
    third: str
    background: tuple[int, int, int]

    @property
    def facts(self) -> tuple[tuple[Figure, ...], str, str]:
        """All that a caption says; two scenes with the same facts have the same captions."""
        return tuple(item.figure for item in self.objects), self.where, self.third
