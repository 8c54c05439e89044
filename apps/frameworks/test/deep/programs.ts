/** The programs of docs/frameworks.md, made ready to run as they stand there. */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const root = fileURLToPath(new URL("../../../..", import.meta.url))

/** The program below a heading of the page. */
const programOf = (heading: string): string => {
  const page = readFileSync(join(root, "docs/frameworks.md"), "utf8")
  const [, program] =
    new RegExp(`^## ${heading}\\n(?:(?!^## ).)*?^\`\`\`ts \\w+\\.ts no-run\\n(.*?)^\`\`\``, "ms").exec(page) ?? []
  if (program === undefined) throw new Error(`docs/frameworks.md has no program for ${heading}`)
  return program
}

/** A text in which something stands in the place of what must be there. */
const replaced = (text: string, what: string, by: string): string => {
  if (!text.includes(what)) throw new Error(`the program has no ${what}`)
  return text.replaceAll(what, () => by)
}

/** A program and the project that it is in. */
interface Recipe {
  readonly text: string
  /** The package where its framework is found. */
  readonly folder: string
  readonly type: "module" | "commonjs"
  /** Whether it is compiled, as what has decorators must be. */
  readonly isCompiled: boolean
}

const stripped = (text: string): Recipe => ({ text, folder: "apps/frameworks", type: "module", isCompiled: false })
const nest = (folder: string, type: Recipe["type"], text = programOf("NestJS")): Recipe => ({
  text,
  folder,
  type,
  isCompiled: true
})

const hooks = (by: string) => {
  const text = programOf("NestJS")
  const [own = "process.once"] = /process\.once\("SIGTERM".*?\n {2}\}\)/s.exec(text) ?? []
  return nest("apps/frameworks", "module", replaced(text, own, by))
}

export const recipes = {
  "Nest 12, ES modules": nest("apps/frameworks", "module"),
  "Nest 11, CommonJS": nest("apps/frameworks-nest-11", "commonjs"),
  Fastify: stripped(programOf("Fastify")),
  "Express 5": stripped(programOf("Express")),
  "Express 4": stripped(replaced(programOf("Express"), 'from "express"', 'from "express4"'))
} satisfies Record<string, Recipe>

/** What the page says of Nest's own hooks. */
export const ofHooks = {
  "enableShutdownHooks()": hooks("app.enableShutdownHooks()"),
  "with useProcessExit": hooks('app.enableShutdownHooks(["SIGTERM"], { useProcessExit: true })')
} satisfies Record<string, Recipe>

/** As Nest's own projects have it. */
const compilerOptions = {
  target: "es2023",
  // What the sources need; a project has the declarations.
  lib: ["es2024", "esnext.disposable"],
  module: "nodenext",
  strict: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  skipLibCheck: true,
  types: ["node"],
  // The sources of Requeue, as everything that is tested.
  customConditions: ["@requeue/source"],
  rewriteRelativeImportExtensions: true,
  rootDir: ".",
  outDir: "out"
}

/** Writes a program into a folder of its own, and answers the file to start and how to remove the folder. */
export const prepare = async ({ folder, isCompiled, text, type }: Recipe) => {
  const base = join(root, folder, ".programs")
  mkdirSync(base, { recursive: true })
  const cwd = mkdtempSync(join(base, "program-"))
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ type }))
  writeFileSync(join(cwd, "main.ts"), text)
  const dispose = () => rmSync(cwd, { recursive: true, force: true })
  if (!isCompiled) return { file: join(cwd, "main.ts"), cwd, dispose }
  writeFileSync(join(cwd, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }))
  const compiler = join(root, "node_modules", ".bin", "tsc")
  await promisify(execFile)(compiler, ["-p", cwd, "--pretty", "false"], { cwd }).catch((error: { stdout?: string }) => {
    throw new Error(`the program does not compile: ${error.stdout}`)
  })
  return { file: join(cwd, "out", "main.js"), cwd, dispose }
}
export type Prepared = Awaited<ReturnType<typeof prepare>>
