/**
 * What a source file contains about options: their docstrings, their types, their kinds, and the defaults that its code reads.
 */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { parse, walk } from "../conventions/source.mjs"
import { root } from "../workspace.mjs"

/** Private names of modules that are imported nevertheless: by address of the module. */
const wanted = new Map()
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const names = wanted.get(url)
    if (names === undefined) return loaded
    return {
      ...loaded,
      source: `${String(loaded.source)}\nexport { ${names.map((name) => `${name} as __${name}`).join(", ")} }`
    }
  }
})

const addressOf = (file) => pathToFileURL(join(root, file)).href

/** Announces which constants of a module will be read. Announce all before reading the first, which loads others. */
export const want = (file, names) => {
  const url = addressOf(file)
  wanted.set(url, [...new Set([...(wanted.get(url) ?? []), ...names])])
}

/** Top-level constants of a module, exported or not, by name. */
export const constants = async (file, names) => {
  const module = await import(addressOf(file))
  return Object.fromEntries(names.map((name) => [name, module[`__${name}`]]))
}

export const read = (file) => {
  const text = readFileSync(join(root, file), "utf8")
  const { doc, program } = parse(file, text)
  const slice = ({ end, start }) => text.slice(start, end)
  const declarations = program.body.map((statement) => statement.declaration ?? statement)
  const docText = (node) => doc(node)?.replaceAll(/\s+/g, " ")

  /** The members of what an interface extends: a type of this file, or one that it imports. */
  const inherited = ({ expression }) => {
    const [space, name] =
      expression.type === "MemberExpression" ? [expression.object.name, expression.property.name] : [expression.name]
    const imported = program.body
      .filter(({ type }) => type === "ImportDeclaration")
      .flatMap(({ source, specifiers }) => specifiers.map((each) => ({ from: source.value, each })))
      .find(({ each }) => each.local.name === space)
    if (imported === undefined) return members(space)
    const { each, from } = imported
    return read(join(dirname(file), from)).members(name ?? each.imported.name)
  }

  /** The members of a type, including inherited ones, or of a constant object, by name: docstring, type and file. */
  const members = (name) => {
    const found = new Map()
    const declared = declarations.find(
      (each) => (each.id?.name ?? each.declarations?.[0]?.id?.name) === name && each.type !== "ExportNamedDeclaration"
    )
    if (declared === undefined) throw new Error(`${file}: there is no ${name}`)
    const isType = declared.type.startsWith("TS")
    const top = isType ? (declared.body?.body ?? [declared.typeAnnotation]) : declared.declarations[0].init.properties
    const add = (node) => {
      const type = node.typeAnnotation ? slice(node.typeAnnotation.typeAnnotation).replace(/ \| undefined$/, "") : ""
      const text = docText(node)
      if (type !== "undefined" && !text?.startsWith("Not an option"))
        found.set(node.key.name, { doc: text, type, file })
    }
    for (const node of top) {
      if (node.type === "Property") add(node)
      else if (isType && node.type !== "SpreadElement") {
        const nested = []
        walk(node, (each) => each.type === "TSPropertySignature" && nested.push(each))
        // Members of members are not options.
        for (const each of nested) {
          const inner = nested.some((other) => other !== each && other.start < each.start && each.end < other.end)
          if (!inner) add(each)
        }
      }
    }
    const more = (declared.extends ?? []).flatMap((each) => [...inherited(each)])
    return new Map([...found, ...more.filter(([each]) => !found.has(each))])
  }

  const literal = (node) => {
    if (node.type === "Literal") return node.value
    if (node.type === "BinaryExpression" && node.operator === "*") return literal(node.left) * literal(node.right)
    if (node.type !== "Identifier") return undefined
    const declared = declarations.flatMap((each) => each.declarations ?? []).find(({ id }) => id.name === node.name)
    return declared?.init ? literal(declared.init) : undefined
  }

  /** The literals where the code destructures options, by name: `{ size = 10 }` and `options.size ?? 10`. */
  const defaults = () => {
    const found = new Map()
    walk(program, (node) => {
      const isPattern = node.type === "Property" && node.value?.type === "AssignmentPattern"
      const isOr = node.type === "LogicalExpression" && node.operator === "??"
      const name = isPattern ? node.key.name : isOr ? (node.left.property?.name ?? node.left.name) : undefined
      const value = name && literal(isPattern ? node.value.right : node.right)
      if (value !== undefined && value !== "") found.set(name, value)
    })
    return found
  }

  return { members, defaults }
}
