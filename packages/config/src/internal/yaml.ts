/** Parses YAML. */
import * as Yaml from "yaml"
import { place, SyntaxProblem } from "./syntaxProblem.ts"

const quotes = "Put text that begins with *, &, !, @, % or ` in quotes"

/** Faults and how to fix them, by the code of YAML's error. */
const faults: Readonly<Record<string, readonly [detail: string, remedy: string]>> = {
  BAD_DIRECTIVE: ["text begins with a character that has a meaning in YAML", quotes],
  BAD_SCALAR_START: ["text begins with a character that has a meaning in YAML", quotes],
  TAG_RESOLVE_FAILED: ["text begins with a character that has a meaning in YAML", quotes],
  BLOCK_AS_IMPLICIT_KEY: [
    "there is a second key in one line",
    'Put text that contains a colon in quotes, as in main: "memory:"'
  ],
  BLOCK_IN_FLOW: ["there is a key without a value", 'Put text that contains a colon in quotes, as in main: "memory:"'],
  DUPLICATE_KEY: ["a key is repeated", "Remove one of these keys"],
  MISSING_CHAR: ["a quote, a bracket or a comma is missing", "Add it"],
  MULTIPLE_DOCS: ["a second document begins", "Remove the line ---"],
  TAB_AS_INDENT: ["a tab indents the line", "Indent it with spaces"]
}

/** Finds a variable without quotes inside braces or brackets: YAML reads its brace as the beginning of an object. */
const unquoted = (text: string, offset: number): readonly [string, string] | undefined => {
  const [, name] = /^\$\{([A-Za-z_]\w*)\}/.exec(text.slice(offset - 1)) ?? []
  if (name === undefined) return undefined
  // Another name may be a password in which a dollar precedes a brace.
  const shown = /^[A-Z_][A-Z0-9_]*$/.test(name) ? name : "NAME"
  return [`\${${shown}} has no quotes inside { } or [ ]`, `Put the whole text in quotes, as in "\${${shown}}"`]
}

const unclosed = ({ code, message }: Yaml.YAMLError): readonly [string, string] | undefined => {
  if (code !== "BAD_INDENT") return undefined
  const [, kind] = /^Flow (map|sequence)/.exec(message) ?? []
  if (kind === undefined) return ["a line is indented differently from those next to it", "Indent it like those lines"]
  const [open, end] = kind === "map" ? ["{", "}"] : ["[", "]"]
  return [`a ${open} is not closed`, `Add its ${end}`]
}

/** Returns the position of the last brace or bracket before the error that has no end; the position of the error without one. */
const openedAt = (text: string, error: number, [open, end]: readonly [string, string]): number => {
  const opened: Array<number> = []
  for (let index = 0; index < error; index++) {
    if (text[index] === open) opened.push(index)
    else if (text[index] === end) opened.pop()
  }
  return opened.at(-1) ?? error
}

/** Returns the position of the fault: a parser reports an open brace where the text that should close it ends. */
const offsetOf = ({ code, message, pos }: Yaml.YAMLError, text: string): number => {
  const [, kind] = code === "BAD_INDENT" ? (/^Flow (map|sequence)/.exec(message) ?? []) : []
  return kind === undefined ? pos[0] : openedAt(text, pos[0], kind === "map" ? ["{", "}"] : ["[", "]"])
}

/** Returns the fault and how to fix it. */
const faultOf = (wrong: Yaml.YAMLError, text: string): readonly [string, string] =>
  unquoted(text, wrong.pos[0]) ??
  unclosed(wrong) ??
  faults[wrong.code] ?? ["the file is not valid YAML", "Fix the syntax there"]

/** Returns the first alias without an anchor, or anchored text without an alias: its first character was meant as text. */
const mistakenText = (document: Yaml.Document): Yaml.Node | undefined => {
  const named = new Set<string>()
  const anchored: Array<Yaml.Scalar> = []
  let found: Yaml.Node | undefined
  Yaml.visit(document, {
    Alias: (_, alias) => {
      named.add(alias.source)
      if (alias.resolve(document) === undefined) found ??= alias
    },
    Scalar: (_, scalar) => void (scalar.anchor !== undefined && anchored.push(scalar))
  })
  return found ?? anchored.find(({ anchor }) => !named.has(anchor!)) // Each of them has one.
}

/** Parses a text. Throws a {@link SyntaxProblem}. */
export const parse = (text: string): unknown => {
  const lines = new Yaml.LineCounter()
  const document = Yaml.parseDocument(text, { lineCounter: lines, logLevel: "error", prettyErrors: false })
  const [wrong] = [...document.errors, ...document.warnings]
  const mistaken = wrong === undefined ? mistakenText(document) : undefined
  const offset = wrong === undefined ? mistaken?.range?.[0] : offsetOf(wrong, text)
  if (offset !== undefined) {
    const [detail, remedy] = wrong === undefined ? faults["BAD_SCALAR_START"]! : faultOf(wrong, text) // It is in the table.
    throw new SyntaxProblem(`${detail} ${place(lines.linePos(offset))}`, remedy)
  }
  return document.toJS()
}
