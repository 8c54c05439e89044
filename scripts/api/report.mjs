/** The API report of a package: what can be imported from it, with its types, and the types behind them. */
import { importable } from "../conventions/entries.mjs"
import { linked } from "../conventions/exports.mjs"
import { parse, walk } from "../conventions/source.mjs"

/** `["Delay", "Input"]` of `Delay.DurationInput`; for the type of an import, only its names. */
const pathOf = (node) => {
  if (node === null || node.type === "TSImportType") return []
  if (node.type === "Identifier") return [node.name]
  return [...pathOf(node.left ?? node.object), (node.right ?? node.property).name]
}

/**
 * The names that a declaration refers to: those of types, base classes and computed keys; `from` is that of `import("./a.ts")`.
 */
const references = (declaration) => {
  const found = []
  walk(declaration, (node) => {
    if (node.type === "TSImportType") {
      found.push({ from: node.source.value, path: node.qualifier ? pathOf(node.qualifier) : [] })
    }
    const base = /^TS(InterfaceHeritage|ClassImplements)$/.test(node.type) ? node.expression : node.superClass
    const name = node.typeName ?? node.exprName ?? base ?? (node.computed === true ? node.key : undefined)
    if (/^(Identifier|MemberExpression|TSQualifiedName)$/.test(name?.type)) found.push({ path: pathOf(name) })
  })
  return found
}

const specifier = (name, alias) =>
  name === "*" ? `* as ${alias}` : `{ ${name === alias ? "" : `${name} as `}${alias} }`

/** All declarations that the modules `files` lead to, as names by file; `whole` are the modules that programs see. */
const reach = (files, { follow, lookUp, tables }) => {
  const found = new Map()
  const whole = new Set()
  const queue = []
  const add = ({ file, name, statements }) => {
    if (name === "*") return addAll(file)
    const names = found.get(file) ?? found.set(file, new Set()).get(file)
    if (!names.has(name)) queue.push(...statements.map((statement) => ({ file, statement })))
    return names.add(name)
  }
  const addAll = (file) => {
    if (whole.has(file)) return
    whole.add(file)
    if (!found.has(file)) found.set(file, new Set())
    const { declared, exported } = tables.get(file)
    for (const link of [...exported.values(), ...[...declared.keys()].map((name) => ({ name }))]) {
      const target = follow(file, link)
      if (target) add(target)
    }
  }
  for (const file of files) addAll(file)
  for (const { file, statement } of queue) {
    for (const { from, path } of references(statement)) {
      const [name = "*", member] = path
      const target = follow(file, { from, name })
      const declaration = target?.name === "*" && member ? lookUp(target.file, member) : target
      if (declaration) add(declaration)
    }
  }
  return { found, whole }
}

/** How many names a program can write after an import of a module: a namespace counts as its members. */
const count = (file, { follow, tables, targetOf }) => {
  const { exported, stars } = tables.get(file)
  const targets = [...exported.values()].map((link) => follow(file, link))
  const modules = [
    ...targets.filter((target) => target?.name === "*").map((target) => target.file),
    ...stars.map((from) => targetOf(file, from)).filter((target) => target !== undefined)
  ]
  const flat = targets.filter((target) => target?.name !== "*").length
  return modules.reduce((sum, each) => sum + count(each, { follow, tables, targetOf }), flat)
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0)

/**
 * The report of the package in `folder` as Markdown, or `undefined` if nothing can be imported. `declarations` has the compiler's
 * output for its modules, without comments, by source: `packages/core/src/index.ts`.
 */
export const report = (folder, manifest, declarations) => {
  const relative = (file) => file.slice(folder.length + 1)
  const sources = new Map(Object.entries(declarations).map(([file, text]) => [file, parse(`${file}.d.ts`, text)]))
  const entries = [...importable(manifest, [...sources.keys()].map(relative))]
    .map(([file, subpath]) => ({ file: `${folder}/${file}`, path: `${manifest.name}${subpath.slice(1)}` }))
    .toSorted((a, b) => compare(a.path, b.path))
  if (entries.length === 0) return undefined
  const modules = linked(sources)
  const files = entries.map(({ file }) => file)
  const { found, whole } = reach(files, modules)

  const section = (title, file) => {
    const { declared, exported, imported, stars } = modules.tables.get(file)
    const names = [...found.get(file)].toSorted(compare)
    const statements = [...new Set(names.flatMap((name) => declared.get(name)))]
    const used = new Set(statements.flatMap((each) => references(each).map(({ path: [name] }) => name)))
    const imports = [...imported]
      .filter(([alias]) => used.has(alias))
      .map(([alias, { from, name }]) => `import ${specifier(name, alias)} from "${from}"`)
    const exports = [...exported]
      .filter(
        ([alias, { from, name }]) =>
          whole.has(file) && (from !== undefined || alias !== name || !found.get(file).has(name))
      )
      .map(([alias, { from, isType, name }]) =>
        [`export ${isType ? "type " : ""}${specifier(name, alias)}`, ...(from ? [`from "${from}"`] : [])].join(" ")
      )
    return [
      `## ${title}`,
      "",
      "```ts",
      ...imports.toSorted(compare),
      ...stars.map((from) => `export * from "${from}"`).toSorted(compare),
      ...exports.toSorted(compare),
      ...statements.map(({ end, start }) => declarations[file].slice(start, end)),
      "```",
      ""
    ]
  }
  const behind = [...found.keys()].filter((file) => !files.includes(file)).toSorted(compare)
  return [
    `# API of ${manifest.name}`,
    "",
    "Made by `npm run api`. A namespace counts as its members; a name that is a type and a value counts once.",
    "",
    "| import | names |",
    "| --- | --- |",
    ...entries.map(({ file, path }) => `| \`${path}\` | ${count(file, modules)} |`),
    "",
    ...entries.flatMap(({ file, path }) => section(path, file)),
    ...behind.flatMap((file) => section(`Behind the imports: ${relative(file)}`, file))
  ].join("\n")
}
