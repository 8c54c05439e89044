/** A name as messages of errors and logs show it. */

const breaking = /[\p{Cc}\p{Zl}\p{Zp}]/gu

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** A name, quoted and escaped where it has control characters or line breaks: it would forge or break a line of a log. */
export const quoted = (name: string): string =>
  name.search(breaking) === -1 ? name : JSON.stringify(name).replace(breaking, escaped)
