/** What a published package offers: its entries, its exports, and their options, each with its docstring. */
import { entries } from "./entries.mjs"
import { reachable } from "./exports.mjs"

/** The members of a type whose name ends in `Options`, except those of type `never`: they forbid an option. */
const membersOf = ({ name, statements }) => {
  if (!name.endsWith("Options")) return []
  return statements
    .map(({ declaration }) => declaration)
    .flatMap((declaration) => {
      if (declaration?.type === "TSInterfaceDeclaration") return declaration.body.body
      const type = declaration?.type === "TSTypeAliasDeclaration" ? declaration.typeAnnotation : undefined
      return (type?.types ?? [type]).flatMap((part) => part?.members ?? [])
    })
    .filter(({ key, typeAnnotation }) => key && typeAnnotation?.typeAnnotation.type !== "TSNeverKeyword")
}

/** `sources` has the parsed modules of all packages by file. */
export const published = (folder, manifest, sources) => {
  if (manifest.private === true) return { entries: [], exports: [], options: [] }
  const files = [...sources.keys()].filter((file) => file.startsWith(`${folder}/src/`))
  const found = entries(
    manifest,
    files.map((file) => file.slice(folder.length + 1))
  )
  const declarations = reachable(
    found.flatMap((entry) => entry.files.map((file) => `${folder}/${file}`)),
    new Map(files.map((file) => [file, sources.get(file)]))
  )
  return {
    entries: found.map(({ files, key }) => ({
      file: `${folder}/package.json`,
      line: 1,
      key,
      files: files.length,
      internal: files.find((file) => file.includes("/internal/"))
    })),
    exports: declarations.map(({ by, file, name, statements }) => {
      const source = sources.get(file)
      if (name === "*")
        return { file, line: 1, name, doc: source.header ?? (by && sources.get(by.file).doc(by.statement)) }
      const doc = statements.map((statement) => source.doc(statement) ?? "").join("\n")
      return { file, line: source.lineOf(statements[0].start), name, doc: doc.trim() }
    }),
    options: declarations.flatMap((declaration) => {
      const { file, name } = declaration
      const { doc, lineOf } = sources.get(file)
      return membersOf(declaration).map((member) => {
        const option = `${name}.${member.key.name ?? member.key.value}`
        return { file, line: lineOf(member.start), name: option, doc: doc(member) }
      })
    })
  }
}
