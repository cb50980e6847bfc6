"""Documents that are ZIP archives: some members have texts, and all others are copied, in the same order."""

import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO

from heedful.documents.document import Document, Segment
from heedful.errors import InputError
from heedful.wording import counted

MAX_MEMBERS = 50_000
MAX_SIZE = 2**30  # bytes of all members together, uncompressed
MAX_TEXT_SIZE = 2**27  # bytes of a member with texts
ZIP64 = 1  # extra field with sizes, which are written anew


class Archive:
    """ZIP archive in memory, whose names and sizes are checked before a member is read."""

    def __init__(self, data: bytes, name: str, kind: str) -> None:
        self.data = data
        self.name = name
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
            members = self._archive.infolist()
        except (zipfile.BadZipFile, RuntimeError, OSError, ValueError, struct.error) as error:
            raise InputError(
                f"{name}: is not a {kind} file, or is incomplete or protected with a password ({error}); save it again"
            ) from error
        self.members = [member.filename for member in members]
        size = sum(member.file_size for member in members)
        if len(members) > MAX_MEMBERS or size > MAX_SIZE:
            raise InputError(
                f"{name}: has {counted(len(members), 'files')} of {counted(size, 'bytes')} inside; the limits are "
                f"{MAX_MEMBERS:,} and {MAX_SIZE:,}"
            )
        self._names = frozenset(self.members)
        if len(self._names) < len(members):
            raise InputError(f"{name}: has two files of the same name inside; save the document again")
        if any(member.flag_bits & 1 for member in members):
            raise InputError(f"{name}: is encrypted; save the document without a password")

    def __contains__(self, member: str) -> bool:
        return member in self._names

    def read(self, member: str) -> bytes:
        """Return the content of a member."""
        if member not in self:
            raise InputError(f"{self.name}: has no {member} inside, so it is incomplete; save the document again")
        return self._content(self._archive.getinfo(member), MAX_TEXT_SIZE)

    def with_members(self, contents: Mapping[str, bytes]) -> bytes:
        """Return the archive with other contents of some members."""
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w") as target:
            target.comment = self._archive.comment
            for member in self._archive.infolist():
                new = contents.get(member.filename)
                content = self._content(member, MAX_SIZE) if new is None else new
                target.writestr(_header(member), content)
        return buffer.getvalue()

    def _content(self, member: zipfile.ZipInfo, limit: int) -> bytes:
        place = f"{self.name}/{member.filename}"
        if member.file_size > limit:
            raise InputError(f"{place}: has {counted(member.file_size, 'bytes')}; the limit is {limit:,}")
        try:
            return self._archive.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError) as error:
            raise InputError(f"{place}: cannot be unpacked ({error}); save the document again") from error


@dataclass(frozen=True)
class ArchiveDocument:
    """Document in an archive: the members with texts, in the order of reading."""

    archive: Archive
    parts: Mapping[str, Document]

    @property
    def segments(self) -> Sequence[Segment]:
        return [segment for part in self.parts.values() for segment in part.segments]

    def with_segments(self, segments: Sequence[Segment]) -> bytes:
        contents: dict[str, bytes] = {}
        position = 0
        for member, part in self.parts.items():
            present = list(part.segments)
            new = list(segments[position : position + len(present)])
            position += len(present)
            if new != present:
                contents[member] = part.with_segments(new)
        if position != len(segments):
            raise ValueError(f"there are {len(segments)} segments, not {position}")
        return self.archive.with_members(contents) if contents else self.archive.data


def _header(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Return a member's name, time and attributes; what depends on its content is left to the writer."""
    header = zipfile.ZipInfo(member.filename)
    header.date_time = member.date_time  # may be invalid, and stays as it is
    for attribute in ("compress_type", "comment", "create_system", "create_version", "external_attr", "internal_attr"):
        setattr(header, attribute, getattr(member, attribute))
    extra, position = b"", 0
    while position + 4 <= len(member.extra):
        identifier, length = struct.unpack_from("<HH", member.extra, position)
        if identifier != ZIP64:
            extra += member.extra[position : position + 4 + length]
        position += 4 + length
    header.extra = extra
    return header
