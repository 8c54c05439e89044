/** Everything that the rules check, as lists of items with their file and line. */
import { bound } from "./exports.mjs"
import { published } from "./published.mjs"
import { parse, walk } from "./source.mjs"

const isFunction = ({ type }) => /^(ArrowFunctionExpression|FunctionDeclaration|FunctionExpression)$/.test(type)
const isType = ({ type }) => /^(ClassDeclaration|TS(Enum|Interface|TypeAlias)Declaration)$/.test(type)
const isValue = ({ type }) =>
  /^(VariableDeclarator|(Method|Property)Definition|TS(DeclareFunction|FunctionType|(Method|Property)Signature))$/.test(
    type
  )

/** The compiler can check `as const`. */
const isCast = ({ type, typeAnnotation }) =>
  /^TS(AsExpression|TypeAssertion)$/.test(type) && typeAnnotation.typeName?.name !== "const"

/** A comment at the end of a line gives a reason if it is a sentence, however short, and not a directive for a tool. */
const isReason = (text) => text.split(/\s+/).length >= 3 && !/^(oxlint|eslint|oxfmt|prettier|@ts-)/.test(text)

/** The functions of an expression, or among the arguments of its calls. */
const functionsOf = (node) => {
  if (isFunction(node)) return [node]
  const parts = [node.callee, node.object, ...(node.arguments ?? [])]
  return parts.flatMap((part) => (part ? functionsOf(part) : []))
}

/** The names that a node declares. A destructured property has its name from elsewhere. */
const declaredBy = (node, { source }) => {
  if (isType(node)) return [{ kind: "type", id: node.id }]
  if (node.type === "ExportSpecifier") {
    const isNew = !source || node.local.name !== node.exported.name
    return isNew ? [{ kind: "name", id: node.exported, isExported: true }] : []
  }
  if (!isFunction(node) && !isValue(node)) return []
  const patterns = [node.id, node.computed ? undefined : node.key, ...(node.params ?? [])]
  return patterns
    .flatMap((pattern) => (pattern ? bound(pattern, ({ shorthand }) => !shorthand) : []))
    .map((id) => ({ kind: "name", id }))
}

/** The lines of a module with casts and `any`, its functions, its names and its docstrings. */
const contents = ({ above, docstrings, file, lineOf, program, trailing }) => {
  const casts = new Map()
  const functions = []
  const names = [{ file, line: 1, kind: "file", name: file.split("/").at(-1).split(".")[0] }]
  const exported = new Set(program.body.flatMap(({ declaration }) => declaration?.declarations ?? declaration ?? []))
  const isCounted = new Set()

  walk(program, (node, owner) => {
    if (isCast(node) || node.type === "TSAnyKeyword") {
      const { start } = node.typeAnnotation ?? node
      const isExplained = isReason(trailing(start)) || /^(Any|Cast), because \S/m.test(above(start))
      casts.set(lineOf(start), { file, line: lineOf(start), isExplained })
    }
    if (isFunction(node)) {
      const line = lineOf(node.start)
      const isExplained = /^Long, because \S/m.test(above(owner.start))
      if (!isCounted.has(node)) functions.push({ file, line, lines: lineOf(node.end) - line + 1, isExplained })
      // `(a) => Effect.gen(function* () {})` is one function.
      if (node.expression) for (const part of functionsOf(node.body)) isCounted.add(part)
    }
    for (const { id, isExported = exported.has(node) && id === node.id, kind } of declaredBy(node, owner)) {
      names.push({ file, line: lineOf(id.start), kind, name: id.name, isExported })
    }
  })
  return {
    casts: [...casts.values()],
    docstrings: docstrings.map(({ start, text }) => ({ file, line: lineOf(start), text })),
    functions,
    names
  }
}

/** Takes the texts of sources and of packages' manifests, by file. */
export const inventory = (texts) => {
  const isManifest = (file) => file.endsWith("/package.json")
  const files = Object.keys(texts)
  const modules = files.filter((file) => !isManifest(file))
  const sources = new Map(modules.map((file) => [file, parse(file, texts[file])]))
  const parts = [
    ...[...sources.values()].map(contents),
    ...files
      .filter(isManifest)
      .map((file) => published(file.replace("/package.json", ""), JSON.parse(texts[file]), sources))
  ]
  const kinds = ["casts", "docstrings", "entries", "exports", "functions", "names", "options"]
  return Object.fromEntries(kinds.map((kind) => [kind, parts.flatMap((part) => part[kind] ?? [])]))
}
