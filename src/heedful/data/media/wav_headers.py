"""Headers of WAV and AU files that were written before their length was known, as into a pipe: made true."""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, Literal

STREAMED = 2**31 - 2**16  # bytes of a WAV file; a header that announces more was written before the length was known
LARGEST = 2**32 - 1  # bytes that a header can announce
AU_HEADER = 24  # bytes of the shortest header of an AU file
CHUNKS = 1000  # that are looked through for the samples; files have a handful


def true_header(stream: BinaryIO, size: int) -> bytes | None:
    """Return the header of a WAV or AU file of unknown length, with the length of the file written into it.

    Recorders that write into a pipe leave 0, or a very large number, where the number of bytes belongs.

    Args:
        stream: the file, at any place.
        size: its number of bytes.

    Returns:
        The first bytes of the file, up to its samples; None if the header is true, or is that of another format.
    """
    stream.seek(0)
    start = stream.read(12)
    if start[:4] == b".snd":
        return _true_au(stream, start, size)
    if start[:4] not in (b"RIFF", b"RIFX") or start[8:] != b"WAVE":
        return None
    order = "little" if start[:4] == b"RIFF" else "big"
    for name, place, length in islice(_chunks(stream, 12, order), CHUNKS):
        if name != b"data":
            continue
        begin = place + 8
        if not _is_untold(stream, begin, length, size, order):
            return None
        stream.seek(0)
        header = bytearray(stream.read(begin))
        header[4:8] = min(size - 8, LARGEST).to_bytes(4, order)
        header[place + 4 : begin] = min(size - begin, LARGEST).to_bytes(4, order)
        return bytes(header)
    return None


def _true_au(stream: BinaryIO, start: bytes, size: int) -> bytes | None:
    begin, length = int.from_bytes(start[4:8], "big"), int.from_bytes(start[8:12], "big")
    if length or not AU_HEADER <= begin < min(size, STREAMED):
        return None
    stream.seek(0)
    header = bytearray(stream.read(begin))
    header[8:12] = (size - begin).to_bytes(4, "big")
    return bytes(header)


def _chunks(stream: BinaryIO, place: int, order: Literal["little", "big"]) -> Iterator[tuple[bytes, int, int]]:
    """Iterate over the chunks of a WAV file from a place on: the name, place and announced length of each."""
    while True:
        stream.seek(place)
        header = stream.read(8)
        if len(header) < 8:
            return
        length = int.from_bytes(header[4:], order)
        yield header[:4], place, length
        place += 8 + length + length % 2


def _is_untold(stream: BinaryIO, begin: int, length: int, size: int, order: Literal["little", "big"]) -> bool:
    """True if the length of the samples that begin at a place was not known when the header was written.

    After samples that are really none, other chunks fill the file to its end.
    """
    if begin >= size:
        return False
    if length:
        return length >= STREAMED and begin + length > size
    place = begin
    for _, chunk, following in islice(_chunks(stream, begin, order), CHUNKS):
        place = chunk + 8 + following
    return not size <= place <= size + 1
