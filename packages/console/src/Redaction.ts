/** Redaction: what operators do not get to see of a letter. It is done on the server, before anything is rendered. */
import * as Secrets from "./internal/secrets.ts"

/**
 * The parts of a letter that people may have to be kept from. A part is left out where it is not shown; what a hook leaves out
 * of its answer is hidden.
 */
export interface Content {
  /** The headers by name. */
  readonly headers: Readonly<Record<string, string>>
  readonly id?: string | undefined
  /** The error of the last attempt. For causes and below `bodies`, the pattern of the message that is answered is shown. */
  readonly error?:
    | {
        readonly name: string
        readonly message: string
        /** The stack trace. It is shown to those who may see bodies. */
        readonly stack?: string | undefined
      }
    | undefined
  /** The errors of the attempts before, as their names and messages. */
  readonly history?: ReadonlyArray<string> | undefined
  /** The body: a JSON value, else text, else a `Uint8Array` for bytes that are no text. A text in place of any of them hides it. */
  readonly body?: unknown
}

/**
 * Answers the content without what is to be hidden. Where it throws, or answers something else, as a promise, nothing of the
 * content is shown.
 */
export type Redact = (content: Content, letter: { readonly broker: string; readonly queue: string }) => Content

/** The text in the place of what is hidden. */
export const mark = "•••• redacted"

/** Names of secrets, as {@link words} writes names. Short ones are words of their own: `pin` is none of `pinned`. */
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

/** The words of a name: `accessKey`, `access_key` and `access.key` are `access-key`. */
const words = (name: string): string =>
  decoded(name)
    .replace(/([\p{Ll}\d])(?=\p{Lu})/gu, "$1-")
    .toLowerCase()
    .replace(/[^\p{L}\d]+/gu, "-")

const isSecret = (name: string): boolean => secret.test(words(name.slice(0, 256)))

/** Texts that are hidden in text that is no JSON, or only a part of one; in this order. */
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

/** A name in text and what is behind it: `name=`, `"name": ` and `\"name\":`. */
const named = /(?<![\w.%[\]-])((?:[\w.%[\]-]{1,64} )?[\w.%[\]-]{1,64})\\*["']?\s{0,8}[:=]\s{0,8}/g

/** A value: in quotes, also of JSON within a text; with parts, of which all that follows is meant; or a word. */
const valued = /\\*"(?:[^"\\]|\\.)*"?|'[^']*'?|[{[][^]*|[^\s,;&<>}\]]+/y

/** Text without the values whose names are secret. */
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
  // Each line is a value of its own.
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

/** The deepest value that is looked into; what lies deeper is hidden. */
const deepest = 100

/** Fields by which an entry of a list says what it is: `{ "name": "password", "value": "…" }`. */
const namings: ReadonlySet<string> = new Set(["name", "key", "field", "header", "k", "n"])

const namesSecret = ([name, value]: readonly [string, unknown]): boolean =>
  namings.has(name.toLowerCase()) && typeof value === "string" && isSecret(value)

/** The value without secrets. `path` is the name of what it is in: the `number` of a `card` is one, of an `order` none. */
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
 * Hides values whose names say that they are secret: passwords, tokens, cookies, numbers of cards and the like, in JSON, also
 * within its texts, in forms, XML and lines of a log; and `Bearer` and `Basic` credentials and passwords of URLs wherever they
 * stand. It hides bytes that are no text, since nobody can say what is in them.
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

/** Hides nothing: for bodies without secrets, or to see the bytes of one that is no text. */
export const none: Redact = (content) => content
