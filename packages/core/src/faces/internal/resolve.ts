/** From a broker's address to its adapter: the one that was handed over, or the one package that the address means. */
import { createRequire } from "node:module"
import { join, resolve as resolvePath } from "node:path"
import { pathToFileURL } from "node:url"
import * as Redacted from "effect/Redacted"
import { ConfigurationError } from "../../options/ConfigurationError.ts"
import { type Adapter, isAdapter, type Options } from "../../port/Adapter.ts"

/** The packages of schemes that have other names than their packages. */
const packages: Readonly<Record<string, string>> = {
  memory: "@requeue/adapter-memory",
  amqp: "@requeue/adapter-rabbitmq",
  amqps: "@requeue/adapter-rabbitmq",
  nsq: "@requeue/adapter-nsq",
  sqs: "@requeue/adapter-sqs"
}

/** The package that serves a scheme of somebody else's, by convention. */
const conventional = (scheme: string): string => `requeue-adapter-${scheme}`

/** An adapter, and the address that it is to serve. The address may hold passwords, and is not shown. */
export interface Resolved {
  readonly adapter: Adapter
  /** The scheme of the URL, without the colon. */
  readonly scheme: string
  readonly address: Redacted.Redacted<{ readonly url: URL; readonly options: Options }>
}

/** Resolves an address. An adapter that the address names comes first, then the given ones, then the scheme's package. */
export const resolve = async (broker: unknown, given: ReadonlyArray<Adapter> = []): Promise<Resolved> => {
  const { adapter: named, url: address, ...options } = isConfig(broker) ? broker : { url: broker }
  const url = parse(Redacted.isRedacted(address) ? Redacted.value(address) : address)
  const scheme = url.protocol.slice(0, -1)
  const adapter = await adapterOf(scheme, named, given)
  return { adapter, scheme, address: Redacted.make({ url, options }) }
}

const adapterOf = async (scheme: string, named: unknown, given: ReadonlyArray<Adapter>): Promise<Adapter> => {
  if (typeof named === "string") return serving(scheme, await load(named, scheme), named)
  if (named !== undefined) return serving(scheme, checked(named, "adapter"), "the adapter")
  const ours = given.find((each) => checked(each, "adapters").schemes.includes(scheme))
  if (ours !== undefined) return ours
  const name = packages[scheme] ?? conventional(scheme)
  return serving(scheme, await load(name, scheme), name)
}

const isConfig = (
  broker: unknown
): broker is { readonly url: unknown; readonly adapter?: unknown } & Readonly<Record<string, unknown>> =>
  Object.prototype.toString.call(broker) === "[object Object]" && Object.hasOwn(Object(broker), "url")

const refusal = (field: string, detail: string, remedy: string) => new ConfigurationError({ field, detail, remedy })

const parse = (broker: unknown): URL => {
  if (broker instanceof URL) return broker
  if (typeof broker !== "string") {
    const got = broker === null ? "null" : typeof broker
    throw refusal(
      "url",
      `the broker must be a URL, an object with a url, or a Layer, got ${got}`,
      `Pass a URL such as "memory:"`
    )
  }
  const url = URL.parse(broker)
  // The text itself is not shown: it may hold a password.
  if (url === null) throw refusal("url", "the broker is no URL", `Use a URL such as "memory:"`)
  return url
}

const checked = (value: unknown, field: string): Adapter => {
  if (isAdapter(value)) return value
  throw refusal(
    field,
    "it is no adapter: an adapter has schemes and a layer",
    "Pass what the adapter's package exports as adapter"
  )
}

const serving = (scheme: string, adapter: Adapter, who: string): Adapter => {
  if (adapter.schemes.includes(scheme)) return adapter
  const known = adapter.schemes.map((each) => `${each}:`).join(", ")
  throw refusal("url", `${who} does not serve the scheme ${scheme}:`, `Use a URL with ${known}, or another adapter`)
}

/** A package, or a module of one. What else an import may mean, such as a file or code in a URL, is not loaded. */
const packageName = /^(@[\w.-]+\/)?\w[\w.+-]*(\/[\w.-]+)*$/

const load = async (name: string, scheme: string): Promise<Adapter> => {
  if (!packageName.test(name)) {
    throw refusal("adapter", "it is not the name of a package", "Name a package, such as @acme/requeue-redis")
  }
  const module = await imported(name, scheme)
  if (isAdapter(module.adapter)) return module.adapter
  throw refusal("adapter", `${name} exports no adapter`, "Name a package that exports one as adapter")
}

const imported = async (name: string, scheme: string): Promise<{ readonly adapter?: unknown }> => {
  try {
    return await import(name)
  } catch (error) {
    if (!isMissing(error, name)) throw error
  }
  const file = find(name)
  if (file !== undefined) return await import(pathToFileURL(file).href)
  if (name !== conventional(scheme)) {
    throw refusal("url", `the adapter for ${scheme}: is not installed`, `Run: npm install ${packageOf(name)}`)
  }
  const known = Object.keys(packages).map((each) => `${each}:`)
  throw refusal(
    "url",
    `no adapter serves the scheme ${scheme}:`,
    `Use one of ${known.join(", ")}, install ${name}, or name another package as adapter`
  )
}

/** With a strict node_modules layout, the adapter is a dependency of the program and not visible from here. */
const find = (name: string): string | undefined => {
  const [, main = "."] = process.argv
  for (const program of [main, join(process.cwd(), "package.json")]) {
    try {
      return createRequire(resolvePath(program)).resolve(name)
    } catch (error) {
      // Else the next one may see it.
      if (codeOf(error) !== "ERR_PACKAGE_PATH_NOT_EXPORTED") continue
      throw refusal("adapter", `${name} has exports without a default condition`, "Import it, and pass its adapter")
    }
  }
  return undefined
}

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined)

/** The package that a module belongs to. */
const packageOf = (name: string): string => /^(@[^/]+\/)?[^/]+/.exec(name)![0]

/** The adapter itself is missing, and not something that it imports. */
const isMissing = (error: unknown, name: string): boolean =>
  codeOf(error) === "ERR_MODULE_NOT_FOUND" &&
  error instanceof Error &&
  error.message.startsWith(`Cannot find package '${packageOf(name)}'`)
