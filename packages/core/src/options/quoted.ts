/** A name as messages of errors and logs show it. */

const breaking = /[\p{Cc}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Escapes control characters (C0 and C1) and line breaks, which could forge or split a log line. */
export const printable = (text: string): string => text.replace(breaking, escaped)

/** Quotes and escapes a name with control characters or line breaks, which could forge or split a log line. */
export const quoted = (name: string): string => (name.search(breaking) === -1 ? name : printable(JSON.stringify(name)))
