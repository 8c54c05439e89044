/** From a broker's URL to its adapter. Only the adapter that serves the URL's scheme is loaded. */
import { createRequire } from "node:module"
import { join, resolve as resolvePath } from "node:path"
import { pathToFileURL } from "node:url"
import * as Redacted from "effect/Redacted"
import type { Adapter, Options } from "../../port/Adapter.ts"
import { ConfigurationError } from "../../options/ConfigurationError.ts"

/** The package that serves each scheme. */
const packages: Readonly<Record<string, string>> = {
  memory: "@requeue/adapter-memory",
  amqp: "@requeue/adapter-rabbitmq",
  amqps: "@requeue/adapter-rabbitmq",
  nsq: "@requeue/adapter-nsq",
  sqs: "@requeue/adapter-sqs"
}

/** The adapter of an address. What is asked of it may hold passwords, and is not shown. */
export interface Resolved {
  readonly adapter: Adapter
  /** Without the colon. */
  readonly scheme: string
  readonly address: Redacted.Redacted<{ readonly url: URL; readonly options: Options }>
}

export const resolve = async (broker: unknown): Promise<Resolved> => {
  const { url: given, ...options } = isConfig(broker) ? broker : { url: broker }
  const url = parse(Redacted.isRedacted(given) ? Redacted.value(given) : given)
  const scheme = url.protocol.slice(0, -1)
  const name = packages[scheme]
  if (name === undefined) {
    throw invalid(
      `no adapter serves the scheme ${scheme}:`,
      `Use one of ${Object.keys(packages)
        .map((known) => `${known}:`)
        .join(", ")}, or pass an adapter's Layer`
    )
  }
  const { adapter } = await load(name, scheme)
  return { adapter, scheme, address: Redacted.make({ url, options }) }
}

const isConfig = (broker: unknown): broker is { readonly url: unknown } & Options =>
  Object.prototype.toString.call(broker) === "[object Object]" && Object.hasOwn(broker as object, "url")

const invalid = (detail: string, remedy: string) => new ConfigurationError({ field: "url", detail, remedy })

const parse = (broker: unknown): URL => {
  if (broker instanceof URL) return broker
  if (typeof broker !== "string") {
    const got = broker === null ? "null" : typeof broker
    throw invalid(
      `the broker must be a URL, an object with a url, or a Layer, got ${got}`,
      `Pass a URL such as "memory:"`
    )
  }
  const url = URL.parse(broker)
  // The text itself is not shown: it may hold a password.
  if (url === null) throw invalid("the broker is no URL", `Use a URL such as "memory:"`)
  return url
}

const load = async (name: string, scheme: string): Promise<{ readonly adapter: Adapter }> => {
  try {
    return await import(name)
  } catch (error) {
    if (!isMissing(error, name)) throw error
  }
  const file = find(name)
  if (file === undefined) throw invalid(`the adapter for ${scheme}: is not installed`, `Run: npm install ${name}`)
  return await import(pathToFileURL(file).href)
}

/** With a strict node_modules layout, the adapter is a dependency of the program and not visible from here. */
const find = (name: string): string | undefined => {
  const [, main = "."] = process.argv
  for (const program of [main, join(process.cwd(), "package.json")]) {
    try {
      return createRequire(resolvePath(program)).resolve(name)
    } catch {
      // The next one may see it.
    }
  }
  return undefined
}

/** The adapter itself is missing, and not something that it imports. */
const isMissing = (error: unknown, name: string): boolean =>
  error instanceof Error &&
  "code" in error &&
  error.code === "ERR_MODULE_NOT_FOUND" &&
  error.message.startsWith(`Cannot find package '${name}'`)
