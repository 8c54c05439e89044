/** A message's body as text and as JSON. */

const decoder = new TextDecoder("utf-8", { fatal: true })

/** Decodes bytes as UTF-8; `undefined` where they are no text. */
const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** Decodes bytes as a JSON value, else as text, else answers `{ base64 }`. */
export const toJson = (bytes: Uint8Array): unknown => {
  const text = textOf(bytes)
  if (text === undefined) return { base64: Buffer.from(bytes).toString("base64") }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Shows bytes as text, without characters that control a terminal; in base64 where they are no text. */
export const show = (bytes: Uint8Array): string => {
  const text = textOf(bytes)
  if (text === undefined) return `base64:${Buffer.from(bytes).toString("base64")}`
  // Tabs and line ends may stay. Escape sequences, which any producer may send, may not.
  return text.replaceAll(/[\p{Cc}]/gu, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"))
}

/** Shows bytes in one line of at most `width` characters; default 120. */
export const line = (bytes: Uint8Array, width = 120): string => {
  const text = show(bytes).replaceAll(/\s+/g, " ").trim()
  return text.length > width ? `${text.slice(0, width - 1)}…` : text
}
