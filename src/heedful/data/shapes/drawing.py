"""Draws scenes as PNG files: larger, without smoothing, and then reduced, which makes the edges smooth."""

from io import BytesIO

from heedful.data.media.pictures import pillow
from heedful.data.shapes.scene import SIDE, UNITS, Scene


def png(scene: Scene) -> bytes:
    """Draw a scene and return the bytes of a PNG file; the same scene always has the same.

    Raises:
        InputError: Pillow is not installed.
    """
    library = pillow()
    from PIL import ImageDraw

    picture = library.new("RGB", (SIDE * UNITS, SIDE * UNITS), scene.background)
    pen = ImageDraw.Draw(picture)
    for item in scene.objects:
        pen.polygon(item.outline, fill=item.figure.colour.rgb)
    stream = BytesIO()
    picture.reduce(UNITS).save(stream, "PNG")
    return stream.getvalue()
