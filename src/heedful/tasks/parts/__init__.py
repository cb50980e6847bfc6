"""Parts that several tasks share: data of texts, running text and media files; text generation; and class labels."""
