/** The declarations that modules export, their own and those of other modules. */
import { posix as path } from "node:path"

/** The identifiers that a pattern binds; of a destructured object, those of the requested properties. */
export const bound = (pattern, isWanted = () => true) => {
  if (pattern.type === "Identifier") return [pattern]
  const parts = pattern.properties?.filter(isWanted) ?? pattern.elements ?? [pattern.left ?? pattern.argument]
  return parts.flatMap((part) => (part ? bound(part.type === "Property" ? part.value : part, isWanted) : []))
}

const namesOf = (node) => (node.declarations?.flatMap(({ id }) => bound(id)) ?? [node.id ?? []].flat()).map(nameOf)
const nameOf = ({ name, value }) => name ?? value

/**
 * The statements that declare each name of a module, and a link for each name that it imports or exports: to a name of the module
 * `from`, or of this one. The name `*` is that of a whole module.
 */
const tablesOf = ({ program }) => {
  const tables = { declared: new Map(), imported: new Map(), exported: new Map(), stars: [] }
  const { declared, exported, imported, stars } = tables
  for (const statement of program.body) {
    const from = statement.source?.value
    for (const { exported: alias, exportKind, imported: original, local, type } of statement.specifiers ?? []) {
      const isType = exportKind === "type" || statement.exportKind === "type"
      if (type === "ExportSpecifier") exported.set(nameOf(alias), { from, name: nameOf(local), isType })
      else if (type === "ImportSpecifier") imported.set(local.name, { from, name: nameOf(original) })
      else imported.set(local.name, { from, name: type === "ImportNamespaceSpecifier" ? "*" : "default" })
    }
    if (statement.type === "ExportAllDeclaration") {
      if (statement.exported === null) stars.push(from)
      else exported.set(nameOf(statement.exported), { from, name: "*", statement })
      continue
    }
    const names =
      statement.type === "ExportDefaultDeclaration" ? ["default"] : namesOf(statement.declaration ?? statement)
    for (const name of names) {
      declared.set(name, [...(declared.get(name) ?? []), statement])
      if (statement.declaration) exported.set(name, { name })
    }
  }
  return tables
}

/**
 * The parsed modules `sources`, by file, and where their names lead: `tables` has what a module declares, imports and exports,
 * `follow` resolves one of its links, `lookUp` a name that it exports, `targetOf` an address that it imports. Other modules
 * are not followed.
 */
export const linked = (sources) => {
  const tables = new Map([...sources].map(([file, source]) => [file, tablesOf(source)]))

  const targetOf = (file, from) => {
    const target = path.join(path.dirname(file), from).replace(/\.js$/, ".ts")
    return from.startsWith(".") && sources.has(target) ? target : undefined
  }
  const lookUp = (file, name) => {
    const { exported, stars } = tables.get(file)
    if (exported.has(name)) return follow(file, exported.get(name))
    for (const from of stars) {
      const target = targetOf(file, from)
      const declaration = target && lookUp(target, name)
      if (declaration) return declaration
    }
    return undefined
  }
  const follow = (file, { from, name, statement }) => {
    if (from === undefined) {
      const { declared, imported } = tables.get(file)
      if (declared.has(name)) return { file, name, statements: declared.get(name) }
      return imported.has(name) ? follow(file, imported.get(name)) : undefined
    }
    const target = targetOf(file, from)
    if (target === undefined) return undefined
    return name === "*" ? { file: target, name, by: statement && { file, statement } } : lookUp(target, name)
  }
  return { follow, lookUp, tables, targetOf }
}

/**
 * What can be imported from the modules `files`, each declaration once, however many paths lead to it: its module, name and
 * statements. A module that is exported as a namespace is found under the name `*`, with the statement that does so.
 */
export const reachable = (files, sources) => {
  const { follow, tables, targetOf } = linked(sources)
  const found = new Map()
  const seen = new Set()

  const collect = (file) => {
    if (seen.has(file)) return
    seen.add(file)
    const { exported, stars } = tables.get(file)
    for (const link of exported.values()) {
      const declaration = follow(file, link)
      if (declaration === undefined) continue
      found.set(`${declaration.file} ${declaration.name}`, declaration)
      if (declaration.name === "*") collect(declaration.file)
    }
    for (const target of stars.map((from) => targetOf(file, from))) if (target) collect(target)
  }
  for (const file of files) collect(file)
  return [...found.values()]
}
