/** Bodies as SQS carries them: text as it is, other bytes as base64 with a mark. Pure. */
import * as Wire from "./wire.ts"

export type Encoding = "base64" | "empty" | undefined

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const text = (body: Uint8Array): string | undefined => {
  try {
    const decoded = decoder.decode(body)
    return Wire.isLegalText(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

export const encode = (body: Uint8Array): { readonly text: string; readonly encoding: Encoding } => {
  // SQS refuses a body of no characters.
  if (body.length === 0) return { text: "-", encoding: "empty" }
  const plain = text(body)
  if (plain !== undefined) return { text: plain, encoding: undefined }
  return {
    text: Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64"),
    encoding: "base64"
  }
}

/** Total: an encoding that nobody knows is a foreign producer's, and its text is taken as it is. */
export const decode = (content: string, encoding: string | undefined): Uint8Array => {
  if (encoding === "empty") return new Uint8Array()
  return Buffer.from(content, encoding === "base64" ? "base64" : "utf8")
}
