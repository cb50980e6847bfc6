"""Documents against the same sentences, one per line: python benchmarks/documents.py MODEL TEXT [--help]

TEXT has a sentence per line. `heedful translate` takes turns with a file of lines and documents of the same sentences
in paragraphs of five. Measured are the seconds of each process from start to exit, and its peak memory.
"""

import html
import json
import statistics
import sys
import zipfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

import record
from rich.console import Console
from translate import peak_memory, run

from heedful.data.readers.files import read_lines

PARAGRAPH = 5  # sentences
PACKAGE = "http://schemas.openxmlformats.org/package/2006/content-types"
KIND = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
CONTENT_TYPES = f'<Types xmlns="{PACKAGE}"><Override PartName="/word/document.xml" ContentType="{KIND}"/></Types>'
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def paragraphs(sentences: Sequence[str]) -> list[str]:
    return [" ".join(sentences[begin : begin + PARAGRAPH]) for begin in range(0, len(sentences), PARAGRAPH)]


def web_page(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{html.escape(text)}</p>\n" for text in paragraphs(sentences))


def marked_page(sentences: Sequence[str]) -> str:
    """Return a web page with a word in bold type in each paragraph, so that words are aligned."""
    marked = (text.split(" ", 3) for text in map(html.escape, paragraphs(sentences)))
    return "".join(f"<p>{' '.join([*words[:2], f'<b>{words[2]}</b>', *words[3:]])}</p>\n" for words in marked)


def subtitles(sentences: Sequence[str]) -> str:
    time = "00:00:00,000 --> 00:00:01,000"
    return "".join(f"{number}\n{time}\n{text}\n\n" for number, text in enumerate(sentences, start=1))


DOCUMENTS: dict[str, Callable[[Sequence[str]], str]] = {
    "text.txt": lambda sentences: "\n\n".join(paragraphs(sentences)),
    "page.html": web_page,
    "marked.html": marked_page,
    "notes.md": lambda sentences: "\n\n".join(paragraphs(sentences)),
    "film.srt": subtitles,
    "strings.json": lambda sentences: json.dumps(dict(enumerate(sentences)), indent=1),
    "letter.docx": lambda sentences: "".join(
        f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs(sentences)
    ),
}


def write(path: Path, content: str) -> None:
    if path.suffix != ".docx":
        path.write_text(content, encoding="utf-8")
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        document = f'<w:document xmlns:w="{WORD}"><w:body>{content}</w:body></w:document>'
        archive.writestr("[Content_Types].xml", CONTENT_TYPES)
        archive.writestr("word/document.xml", document)


def main() -> None:
    parser = record.parser(__doc__)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=3_000, help="about 100 pages")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console = Console(width=120)
    facts = record.machine(options.threads) | {"model": Path(options.model).name, "lines": options.lines}
    console.print(facts)
    command = [str(Path(sys.executable).with_name("heedful")), "translate", "--model", options.model, "--force"]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sentences = list(islice(read_lines(options.text), options.lines))
        lines = folder / "lines"
        lines.write_text("".join(f"{text}\n" for text in sentences), encoding="utf-8")
        commands = {"lines": [*command, "--input", str(lines), "--output", str(folder / "output")]}
        for name, content in DOCUMENTS.items():
            write(folder / name, content(sentences))
            commands[name] = [*command, str(folder / name)]
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, arguments in commands.items():
                seconds[name].append(run(arguments)[0])
        memory = {name: peak_memory(arguments) for name, arguments in commands.items()}
    for name, values in seconds.items():
        ratio = statistics.median(values) / statistics.median(seconds["lines"])
        console.print(f"{name:14} {statistics.median(values):7.2f} s  {ratio:.2f} of lines  {memory[name]:6.0f} MB")
    record.append(__file__, facts | {"seconds": seconds, "memory": memory})


if __name__ == "__main__":
    main()
