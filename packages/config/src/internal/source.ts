/** Finding and reading a config file. */
import { Failure } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import { basename, dirname, extname, join, relative, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as Yaml from "yaml"
import { ConfigFileError } from "../ConfigFileError.ts"

/** The names of config files; the first that is there wins. */
const names = ["ts", "mts", "js", "mjs", "json", "yaml", "yml"].map((extension) => `requeue.config.${extension}`)

/** Stands for the file's name in errors where no file is found. */
export const anyName = "requeue.config.{ts,js,json,yaml}"

/** A config file on disk. */
export interface Source {
  /** The absolute path. */
  readonly path: string
  /** The path in messages: relative to the working directory where that is shorter. */
  readonly file: string
}

const source = (path: string, cwd: string): Source => {
  const near = relative(cwd, path)
  return { path, file: near.length < path.length ? near : path }
}

const refuse = (file: string, detail: string, remedy: string): ConfigFileError =>
  new ConfigFileError({ file, problems: [{ path: [], detail, remedy }] })

/** Finds the named file, or the first config file in the folder or one above it. */
export const locate = (named: string | undefined, cwd: string): Effect.Effect<Source, ConfigFileError> =>
  Effect.suspend(() => {
    if (named !== undefined) {
      const path = resolve(cwd, named)
      if (existsSync(path)) return Effect.succeed(source(path, cwd))
      return Effect.fail(refuse(named, "there is no such file", "Check its path"))
    }
    for (let folder = cwd; ; folder = dirname(folder)) {
      const path = names.map((name) => join(folder, name)).find((candidate) => existsSync(candidate))
      if (path !== undefined) return Effect.succeed(source(path, cwd))
      if (folder === dirname(folder)) break
    }
    return Effect.fail(refuse(anyName, `there is none in ${cwd} or above it`, "Write one, or name the file"))
  })

const parse = async ({ path }: Source): Promise<unknown> => {
  if (![".json", ".yaml", ".yml"].includes(extname(path))) {
    const module: { readonly default?: unknown } = await import(pathToFileURL(path).href)
    if (module.default === undefined) throw new Error("it has no default export; write export default { … }")
    return module.default
  }
  const text = readFileSync(path, "utf8")
  const value: unknown = extname(path) === ".json" ? JSON.parse(text) : Yaml.parse(text)
  return value
}

/** The words of Node for a module's syntax in a file that it takes for CommonJS, as the package of the file tells it to. */
const isModuleInCommonJs = /^(Cannot use import statement outside a module|Unexpected token 'export')/

const inCommonJs = ({ file }: Source): ConfigFileError => {
  const renamed = basename(file).replace(/([jt]s)$/, "m$1")
  const detail = 'it is written as an ES module, in a package of "type": "commonjs"'
  return refuse(file, detail, `Rename it to ${renamed}`)
}

/** YAML takes a colon at the end of text for the end of a key. */
const remedyOf = (detail: string): string =>
  /^(Nested mappings|Block collections) are not allowed/.test(detail)
    ? 'Put text that contains a colon in quotes, as in main: "memory:"'
    : "Fix the file"

/** Reads the value in a file. */
export const read = (from: Source): Effect.Effect<unknown, ConfigFileError> =>
  Effect.tryPromise({
    try: () => parse(from),
    catch: (cause) => {
      const [detail = "it cannot be read"] = Failure.summarize(cause).message.split("\n")
      return isModuleInCommonJs.test(detail)
        ? inCommonJs(from)
        : refuse(from.file, detail.replace(/[.:]$/, ""), remedyOf(detail))
    }
  })
