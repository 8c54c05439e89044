/** A name as messages of errors and logs show it. */

const breaking = /[\p{Cc}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Quotes and escapes a name with control characters or line breaks, which would forge or break a log line. */
export const quoted = (name: string): string =>
  name.search(breaking) === -1 ? name : JSON.stringify(name).replace(breaking, escaped)
