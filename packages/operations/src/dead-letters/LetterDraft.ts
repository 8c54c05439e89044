/**
 * A dead letter as text to edit: its headers, an empty line, its body.
 *
 * When to use: where people write the copy that `DeadLetters.edit` publishes, such as on the command line or a page.
 */
import { type Message } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetter } from "./internal/deadLetter.ts"

/** The parts of a letter that an operator can edit. */
export type Content = Pick<DeadLetter, "body" | "headers">

/** A comment line, which is not part of the letter. Headers cannot begin this way. */
const comment = "#"

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

/** The parts of a header line. A name has no colon, and neither part has a line end. */
const headerLine = /^([^#:\s][^:]*): (.*)$/

const encoding = ({ headers }: Content): string | undefined => {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === "content-encoding")
  return name === undefined ? undefined : headers[name]
}

/** Returns why a letter cannot be edited as text; `undefined` if it can. */
export const obstacle = (content: Content): string | undefined => {
  const encoded = encoding(content)
  if (encoded !== undefined && encoded.toLowerCase() !== "identity") return `its body is encoded: ${encoded}`
  if (textOf(content.body) === undefined) return "its body is not text"
  const odd = Object.entries(content.headers).find(([name, value]) => {
    const [, readName, readValue] = headerLine.exec(`${name}: ${value}`) ?? []
    return readName !== name || readValue !== value
  })
  return odd === undefined ? undefined : `its header ${JSON.stringify(odd[0])} does not fit into a line`
}

/** Writes a letter as text to edit. The letter must have no {@link obstacle}; `title` becomes a comment line. */
export const write = (content: Content, title: string): string =>
  [
    `${comment} ${title}`,
    `${comment} Headers, an empty line, the body. To cancel, change nothing or delete everything.`,
    ...Object.entries(content.headers).map(([name, value]) => `${name}: ${value}`),
    "",
    textOf(content.body)
  ].join("\n")

/** The result of {@link read}: the edited letter, `unchanged` if nothing was edited, or the problem in the text. */
export type Read = Content | "unchanged" | { readonly problem: string }

const isJson = (headers: Message.Headers): boolean =>
  Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === "content-type" && /^application\/([\w.-]+\+)?json\b/i.test(value)
  )

/** Reads the edited text of a letter. `content` is the letter before the edit. */
export const read = (text: string, content: Content): Read => {
  const lines = text.split("\n")
  const first = lines.findIndex((line) => !line.startsWith(comment))
  const rest = first < 0 ? [] : lines.slice(first)
  if (rest.join("").trim() === "") return "unchanged"
  const blank = rest.findIndex((line) => line.trim() === "")
  if (blank < 0) return { problem: "there is no empty line between the headers and the body" }
  const headers = new Map<string, string>()
  for (const line of rest.slice(0, blank)) {
    const [, name, value] = headerLine.exec(line.replace(/\r$/, "")) ?? []
    if (name === undefined || value === undefined)
      return { problem: `${JSON.stringify(line)} is not a valid header. Write name: value` }
    if (name === Metadata.header) return { problem: `the header ${name} belongs to Requeue` }
    if (headers.has(name)) return { problem: `the header ${name} occurs twice` }
    headers.set(name, value)
  }
  const original = textOf(content.body) ?? ""
  const edited = rest.slice(blank + 1).join("\n")
  // An editor adds a line end to the last line.
  const body = edited.endsWith("\n") && !original.endsWith("\n") ? edited.slice(0, -1) : edited
  const draft: Content = { body: new TextEncoder().encode(body), headers: Object.fromEntries(headers) }
  const isSame =
    body === original &&
    JSON.stringify(Object.entries(draft.headers)) === JSON.stringify(Object.entries(content.headers))
  return isSame ? "unchanged" : (problemOf(body, draft) ?? draft)
}

const problemOf = (body: string, { headers }: Content): { readonly problem: string } | undefined => {
  if (!isJson(headers)) return undefined
  try {
    JSON.parse(body)
    return undefined
  } catch (error) {
    return {
      problem: `the body is not JSON, though its content-type is JSON: ${error instanceof Error ? error.message : ""}`
    }
  }
}
