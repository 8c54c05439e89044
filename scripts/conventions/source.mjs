/** A source file: its syntax tree, and the comments around a node. */
import { parseSync, visitorKeys } from "oxc-parser"

const isDocstring = ({ type, value }) => type === "Block" && value.startsWith("*")

/** The text of comments, without the stars. */
const textOf = (comments) => comments.map(({ value }) => value.replace(/^[ \t]*\*+[ \t]?/gm, "").trim()).join("\n")

export const parse = (file, text) => {
  const { comments, errors, program } = parseSync(file, text)
  if (errors.length > 0) throw new SyntaxError(`${file}: ${errors[0].message}`)

  const lineOf = (offset) => text.slice(0, offset).split("\n").length
  const startOfLine = (offset) => text.lastIndexOf("\n", offset - 1) + 1
  const isTrailing = ({ start, type }) => type === "Line" && text.slice(startOfLine(start), start).trim() !== ""

  /** The comments directly before an offset, with no blank line between. */
  const before = (offset) => {
    const last = comments.findLast(({ end }) => end <= offset)
    if (last === undefined || isTrailing(last)) return []
    const gap = text.slice(last.end, offset)
    return gap.trim() === "" && !/\n\s*\n/.test(gap) ? [...before(last.start), last] : []
  }
  const docOf = (node) => before(node.start).findLast(isDocstring)

  const [first] = comments
  const [statement] = program.body
  const isHeader =
    first !== undefined &&
    statement !== undefined &&
    isDocstring(first) &&
    first.end <= statement.start &&
    (statement.type === "ImportDeclaration" || Boolean(statement.source) || docOf(statement) !== first)

  return {
    file,
    program,
    lineOf,
    /** The docstring of the module itself. */
    header: isHeader ? textOf([first]) : undefined,
    docstrings: comments.filter(isDocstring).map((it) => ({ start: it.start, text: textOf([it]) })),
    doc: (node) => {
      const found = docOf(node)
      return found && textOf([found])
    },
    /** The comments directly above the line of an offset. */
    above: (offset) => textOf(before(startOfLine(offset))),
    /** The `//` comment at the end of the line of an offset. */
    trailing: (offset) =>
      textOf(comments.filter((comment) => isTrailing(comment) && lineOf(comment.start) === lineOf(offset)))
  }
}

const isOwner = ({ type }) => /(Statement|Declaration|Definition|Signature|Property)$/.test(type)

/** Visits a node and all below it, each with its statement or member. */
export const walk = (node, visit, owner = node) => {
  visit(node, owner)
  const next = isOwner(node) ? node : owner
  for (const key of visitorKeys[node.type]) {
    for (const child of [node[key]].flat()) if (child) walk(child, visit, next)
  }
}
