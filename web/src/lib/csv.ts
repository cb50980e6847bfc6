// Tables as files that spreadsheets open.

export function csv(rows: (string | number)[][]): string {
  const cell = (value: string | number) => (typeof value === "string" ? `"${value.replaceAll('"', '""')}"` : value);
  return rows.map((row) => row.map(cell).join()).join("\n");
}

/** Let the browser save a text; the mark at its beginning tells spreadsheets that it is UTF-8. */
export function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
