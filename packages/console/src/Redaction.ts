/** Redaction: what operators do not get to see of a letter. It is done on the server, before anything is rendered. */

/** The parts of a letter that people may have to be kept from. */
export interface Content {
  /** The headers by name. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * The body: a JSON value, else text, else `undefined` for bytes that are no text, which a text in their place hides. Left out
   * where only headers are shown.
   */
  readonly body?: unknown
}

/** Answers the content without what is to be hidden. Where it throws, nothing of the content is shown. */
export type Redact = (content: Content, letter: { readonly broker: string; readonly queue: string }) => Content

/** The text in the place of what is hidden. */
export const mark = "•••• redacted"

const secret =
  /pass(?:word|wd|phrase)|secret|token|credential|authori[sz]ation|cookie|api[-_]?key|private[-_]?key|session|card[-_]?(?:no|num)|iban|cvv|cvc|ssn/i

const isSecret = (name: string): boolean => secret.test(name)

/** The deepest value that is looked into; what lies deeper is hidden. */
const deepest = 100

const walk = (value: unknown, depth: number): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (depth > deepest) return mark
  if (Array.isArray(value)) return value.map((each) => walk(each, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, isSecret(name) ? mark : walk(each, depth + 1)])
  )
}

/** Hides values whose names say that they are secret: passwords, tokens, cookies, numbers of cards and the like. */
export const standard: Redact = ({ body, headers }) => ({
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isSecret(name) ? mark : value])),
  body: walk(body, 0)
})
