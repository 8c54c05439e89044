/** HTML as a value. Templates escape every part that is not such a value. */

/** A piece of HTML. No text and no JSON value can be one. */
export class Html {
  /** The HTML as text, for a response. */
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A part of a template; `undefined` and `false` render nothing. */
export type Part = Html | string | number | undefined | false | ReadonlyArray<Part>

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;"
}

/**
 * Matches characters that pages show as U+FFFD: control characters, characters that change the direction of text, and
 * invisible characters, with which a producer could make a text look like another one. Tabs, line ends and variation
 * selectors stay.
 */
const hidden = /[[\p{Cc}\p{Cf}\p{DI}\u2028\u2029\u2800]--[\ufe00-\ufe0f]]/gv

/** Returns text without characters that hide or reorder others. */
export const visible = (text: string): string =>
  text.toWellFormed().replace(hidden, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"))

const escaped = (text: string): string => visible(text).replace(/[&<>"'`]/g, (char) => entities[char]!)

const write = (part: Part): string => {
  if (part === undefined || part === false) return ""
  if (part instanceof Html) return part.text
  return Array.isArray(part) ? part.map(write).join("") : escaped(String(part))
}

/** The fixed parts of each template, without their indentation. */
const fixed = new WeakMap<TemplateStringsArray, ReadonlyArray<string>>()

const fixedOf = (strings: TemplateStringsArray): ReadonlyArray<string> => {
  const known = fixed.get(strings)
  if (known !== undefined) return known
  const trimmed = strings.map((text) => text.replace(/\n\s*/g, "\n"))
  fixed.set(strings, trimmed)
  return trimmed
}

/** Makes HTML from a template: `` html`<b title="${any}">${any}</b>` ``. Put attributes in double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(
    fixedOf(strings)
      .map((text, index) => (index === 0 ? text : write(parts[index - 1]) + text))
      .join("")
  )
