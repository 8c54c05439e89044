/** HTML as a value: all that is put into it is escaped, unless it is such a value itself. */

/** A piece of HTML. Nothing that comes as text or as JSON can be one. */
export class Html {
  /** The HTML as text, for a response. */
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** All that can be put into HTML; `undefined` and `false` leave nothing. */
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
 * Characters that are shown as U+FFFD: those that control something, as a terminal, those that change the direction of what
 * follows, and those that nobody sees, by which a producer could make a text look like another one. Tabs and line ends may
 * stay, and what chooses the look of the character before.
 */
const hidden = /[[\p{Cc}\p{Cf}\p{DI}\u2028\u2029\u2800]--[\ufe00-\ufe0f]]/gv

/** Text without characters that change how others are shown. */
export const visible = (text: string): string =>
  text.toWellFormed().replace(hidden, (char) => (char === "\n" || char === "\t" ? char : "\ufffd"))

const escaped = (text: string): string => visible(text).replace(/[&<>"'`]/g, (char) => entities[char]!)

const write = (part: Part): string => {
  if (part === undefined || part === false) return ""
  if (part instanceof Html) return part.text
  return Array.isArray(part) ? part.map(write).join("") : escaped(String(part))
}

/** The fixed parts of each template, without the indentation that they have in the sources. */
const fixed = new WeakMap<TemplateStringsArray, ReadonlyArray<string>>()

const fixedOf = (strings: TemplateStringsArray): ReadonlyArray<string> => {
  const known = fixed.get(strings)
  if (known !== undefined) return known
  const trimmed = strings.map((text) => text.replace(/\n\s*/g, "\n"))
  fixed.set(strings, trimmed)
  return trimmed
}

/** The template: `` html`<b title="${any}">${any}</b>` ``. Attributes stand in double quotes. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(
    fixedOf(strings)
      .map((text, index) => (index === 0 ? text : write(parts[index - 1]) + text))
      .join("")
  )
