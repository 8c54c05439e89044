/** Redaction hides parts of letters from operators. The server redacts before it renders. */
import * as Secrets from "./internal/secrets.ts"

/**
 * The parts of a letter that a hook can hide. The console gives the hook only the parts that it shows. If the hook leaves a
 * part out of its answer, the console hides that part.
 */
export interface Content {
  /** The headers by name. */
  readonly headers: Readonly<Record<string, string>>
  readonly id?: string | undefined
  /**
   * The error of the last attempt. Pages of causes show only the pattern of its message, and so do all pages for operators
   * without the role `bodies`.
   */
  readonly error?:
    | {
        readonly name: string
        readonly message: string
        /** The stack trace, which only operators with the role `bodies` see. */
        readonly stack?: string | undefined
      }
    | undefined
  /** The names and messages of the errors of earlier attempts. */
  readonly history?: ReadonlyArray<string> | undefined
  /**
   * The body: a JSON value, a text, or a `Uint8Array` for other bytes. A hook hides the body if it returns a text instead.
   */
  readonly body?: unknown
}

/**
 * Returns the content without its hidden parts. If the function throws or returns anything else, such as a promise, the
 * console shows nothing of the content.
 */
export type Redact = (content: Content, letter: { readonly broker: string; readonly queue: string }) => Content

/** The text that replaces hidden parts. */
export const mark = "•••• redacted"

/** Names of secrets in the form of {@link words}. Short names match whole words only: `pin` does not match `pinned`. */
const secret = new RegExp(
  [
    "pass(?:word|wd|phrase|code)|secret|token|credential|authori[sz]ation|cookie|session",
    "(?:api|access|private|signing|encryption)-?key|card-?(?:no|num|number)(?:-|$)|credit-?card|iban",
    "(?:^|-)(?:pass|pwd|pin|otp|auth|jwt|pan|dsn|cvv|cvc|ssn|sig|signature)(?:-|$)"
  ].join("|")
)

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the words of a name: `accessKey`, `access_key` and `access.key` become `access-key`. */
const words = (name: string): string =>
  decoded(name)
    .replace(/([\p{Ll}\d])(?=\p{Lu})/gu, "$1-")
    .toLowerCase()
    .replace(/[^\p{L}\d]+/gu, "-")

const isSecret = (name: string): boolean => secret.test(words(name.slice(0, 256)))

/** Texts that are hidden in text which is not whole JSON, in this order. */
const rules: ReadonlyArray<readonly [RegExp, (all: string, first: string, second: string) => string]> = [
  [/\b((?:set-)?cookie|(?:proxy-)?authorization): *[^\n"]+/gi, (_, name) => `${name}: ${mark}`],
  [/\b(bearer|basic) +[\w.~+/=-]{8,}/gi, (_, scheme) => `${scheme} ${mark}`],
  // A JSON web token.
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, () => mark],
  // <name>value
  [
    /<([\w:.-]{1,64})((?:\s[^<>]{0,256})?)>(?:\s*<!\[CDATA\[(?:[^\]]|\](?!\]>))*|[^<]+)/g,
    (all, name, rest) => (isSecret(name) ? `<${name}${rest}>${mark}` : all)
  ]
]

/** A name in text and the separator after it: `name=`, `"name": ` and `\"name\":`. */
const named = /(?<![\w.%[\]-])((?:[\w.%[\]-]{1,64} )?[\w.%[\]-]{1,64})\\*["']?\s{0,8}[:=]\s{0,8}/g

/** A value: in quotes, also of JSON within a text; with parts, up to the end; or a word. */
const valued = /\\*"(?:[^"\\]|\\.)*"?|'[^']*'?|[{[][^]*|[^\s,;&<>}\]]+/y

/** Returns text without the values of secret names. */
const unnamed = (text: string): string => {
  const [names, values] = [new RegExp(named), new RegExp(valued)]
  let [left, end] = ["", 0]
  for (let found = names.exec(text); found !== null; found = names.exec(text)) {
    values.lastIndex = names.lastIndex
    if (!isSecret(found[1]!) || !values.test(text)) continue
    left += `${text.slice(end, names.lastIndex)}${mark}`
    end = values.lastIndex
    names.lastIndex = end
  }
  return left + text.slice(end)
}

const textOf = (text: string, depth: number): string => {
  const json = /^\s*["[{]/.test(text) ? parsed(text) : undefined
  if (json !== undefined) {
    const walked = JSON.stringify(walk(json.value, depth + 1))
    return walked === JSON.stringify(json.value) ? text : walked
  }
  const [first = "", ...more] = text.split("\n")
  // Each line is one value.
  if (more.length > 0 && /^\s*[[{]/.test(first) && parsed(first) !== undefined) {
    return [first, ...more].map((line) => textOf(line, depth + 1)).join("\n")
  }
  return unnamed(rules.reduce((left, [found, hidden]) => left.replace(found, hidden), Secrets.strike(text)))
}

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown } // The type of any JSON.
  } catch {
    return undefined
  }
}

/** The deepest level of a value that redaction reads. Deeper values are hidden. */
const deepest = 100

/** Fields that name an entry of a list: `{ "name": "password", "value": "…" }`. */
const namings: ReadonlySet<string> = new Set(["name", "key", "field", "header", "k", "n"])

const namesSecret = ([name, value]: readonly [string, unknown]): boolean =>
  namings.has(name.toLowerCase()) && typeof value === "string" && isSecret(value)

/** Returns the value without secrets. `path` names its parents: the `number` of a `card` is secret, that of an `order` is not. */
const walk = (value: unknown, depth: number, path = ""): unknown => {
  if (depth > deepest) return mark
  if (typeof value === "string") return textOf(value, depth)
  if (value instanceof Uint8Array) return mark
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    const isPair = value.length === 2 && typeof value[0] === "string" && isSecret(value[0])
    return value.map((each, index) => (isPair && index === 1 ? mark : walk(each, depth + 1, path)))
  }
  const entries = Object.entries(value)
  const isNamed = entries.some(namesSecret)
  return Object.fromEntries(
    entries.map(([name, each]) => {
      const isHidden = isSecret(name) || isSecret(`${path}.${name}`) || (isNamed && !namings.has(name.toLowerCase()))
      return [name, isHidden ? mark : walk(each, depth + 1, name)]
    })
  )
}

/**
 * Hides the values of secret names, such as passwords, tokens, cookies and card numbers, in JSON, forms, XML and log lines. It
 * hides `Bearer` and `Basic` credentials and passwords of URLs everywhere. It hides bytes that are not a text, because it
 * cannot search them.
 */
export const standard: Redact = ({ body, error, headers, history, id }) => {
  const told = (text: string) => textOf(text, 0)
  return {
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, isSecret(name) ? mark : told(value)])
    ),
    id: id === undefined ? id : told(id),
    error: error && {
      name: told(error.name),
      message: told(error.message),
      ...(error.stack === undefined ? {} : { stack: told(error.stack) })
    },
    history: history?.map(told),
    body: walk(body, 0)
  }
}

/** Hides nothing. Use it for bodies without secrets, or to see bytes that are not a text. */
export const none: Redact = (content) => content
