"""Documents: the texts of web pages, subtitles, message catalogs and office files, and files with them translated."""
