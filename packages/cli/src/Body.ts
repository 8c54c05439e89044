/** A message's bytes, for people and for scripts. */

const decoder = new TextDecoder("utf-8", { fatal: true })

/** The text that the bytes are; `undefined` where they are none. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** The JSON value that the bytes are, else their text, else `{ base64 }`. */
export const toJson = (bytes: Uint8Array): unknown => {
  const text = textOf(bytes)
  if (text === undefined) return { base64: Buffer.from(bytes).toString("base64") }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Text as it is, without what would move a terminal's cursor; bytes that are no text in base64. */
export const show = (bytes: Uint8Array): string => {
  const text = textOf(bytes)
  if (text === undefined) return `base64:${Buffer.from(bytes).toString("base64")}`
  // Tabs and line ends may stay; an escape sequence of a foreign producer may not.
  return text.replaceAll(/[\p{Cc}]/gu, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"))
}

/** The same in one line of at most `width` characters. */
export const line = (bytes: Uint8Array, width = 120): string => {
  const text = show(bytes).replaceAll(/\s+/g, " ").trim()
  return text.length > width ? `${text.slice(0, width - 1)}…` : text
}
