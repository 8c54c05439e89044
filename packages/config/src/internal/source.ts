/** Finds and reads a config file. */
import { Failure } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { existsSync, readFileSync } from "node:fs"
import { basename, dirname, extname, join, relative, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import { ConfigFileError } from "../ConfigFileError.ts"
import * as Json from "./json.ts"
import { SyntaxProblem } from "./syntaxProblem.ts"

/** The names of config files; the first that exists is used. */
const names = ["ts", "mts", "js", "mjs", "json", "yaml", "yml"].map((extension) => `requeue.config.${extension}`)

/** The file's name in errors when no file is found. */
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
      return Effect.fail(refuse(named, "there is no such file", "Check the path"))
    }
    for (let folder = cwd; ; folder = dirname(folder)) {
      const path = names.map((name) => join(folder, name)).find((candidate) => existsSync(candidate))
      if (path !== undefined) return Effect.succeed(source(path, cwd))
      if (folder === dirname(folder)) break
    }
    return Effect.fail(
      refuse(
        anyName,
        `there is no config file in ${cwd} or a folder above`,
        "Write a config file, or pass the path of one"
      )
    )
  })

const parse = async ({ path }: Source): Promise<unknown> => {
  if (![".json", ".yaml", ".yml"].includes(extname(path))) {
    const module: { readonly default?: unknown } = await import(pathToFileURL(path).href)
    if (module.default === undefined) throw new Error("the file has no default export; write export default { … }")
    return module.default
  }
  const text = readFileSync(path, "utf8").replace(/^\uFEFF/, "")
  if (extname(path) === ".json") return Json.parse(text)
  // The parser of YAML is large, and other files do not need it.
  const Yaml = await import("./yaml.ts")
  return Yaml.parse(text)
}

/**
 * Matches Node's error for the syntax of a module in a CommonJS file. The package of the file decides which of the two it
 * is.
 */
const isModuleInCommonJs = /^(Cannot use import statement outside a module|Unexpected token 'export')/

const inCommonJs = ({ file }: Source): ConfigFileError => {
  const renamed = basename(file).replace(/([jt]s)$/, "m$1")
  const detail = 'the file is an ES module in a package of "type": "commonjs"'
  return refuse(file, detail, `Rename the file to ${renamed}`)
}

/**
 * Returns the error of a module that cannot be loaded. Node's errors for invalid syntax repeat parts of the text, such as a
 * password without quotes, so they are not shown.
 */
const inModule = (cause: unknown, { file, path }: Source): ConfigFileError => {
  const { message, name } = Failure.summarize(cause)
  const [first = ""] = message.split("\n")
  if (isModuleInCommonJs.test(first)) return inCommonJs({ file, path })
  if (name === "SyntaxError")
    return refuse(file, "the file is not valid JavaScript", `Run node ${file} to see the line`)
  if (name !== "ReferenceError") return refuse(file, first.replace(/[.:]$/, ""), "Fix the file")
  const [, after] = (cause instanceof Error ? (cause.stack ?? "") : "").split(`${pathToFileURL(path).href}:`)
  const line = after === undefined ? "" : ` at line ${Number.parseInt(after, 10)}`
  return refuse(file, `the file uses a name that is not defined${line}`, "Put text in quotes")
}

/** Reads the value in a file. */
export const read = (from: Source): Effect.Effect<unknown, ConfigFileError> =>
  Effect.tryPromise({
    try: () => parse(from),
    catch: (cause) =>
      cause instanceof SyntaxProblem ? refuse(from.file, cause.message, cause.remedy) : inModule(cause, from)
  })
