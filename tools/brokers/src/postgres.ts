/** The sources of PostgreSQL. */
import { randomBytes } from "node:crypto"
import { redact } from "./amqp.ts"
import { foreign, ofNodes, settingsOf, Unavailable, type Broker, type Source, type StartOptions } from "./Broker.ts"
import * as Instance from "./Instance.ts"
import { isOf } from "./installation.ts"
import * as installation from "./postgres/installation.ts"
import * as node from "./postgres/node.ts"

export interface PostgresStartOptions extends StartOptions {
  /** ServerSettings of the server. Default: none. */
  readonly parameters?: node.ServerSettings | undefined
}

const variable = "REQUEUE_POSTGRES_URL"

const isRelease = (version: string) => /^\d/.test(version)

const defaults = (options: PostgresStartOptions) => ({
  ...settingsOf(options),
  parameters: options.parameters ?? {},
  password: randomBytes(8).toString("hex")
})

type Settings = ReturnType<typeof defaults>

const attach = async ({ parameters, version }: Settings): Promise<Broker> => {
  const url = process.env[variable] ?? ""
  if (url === "") throw new Unavailable(`${variable} is not set`)
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Error(`${variable} must look like postgres://user:password@host:5432/database, got "${redact(url)}"`)
  }
  if (isRelease(version)) throw new Unavailable(`${version} was requested`)
  const [name] = Object.keys(parameters)
  if (name !== undefined) throw new Unavailable(`${name} can be set only where a server is started`)
  await node.handshake(url).catch((cause: Error) => {
    throw new Error(`${variable}: no connection to ${redact(url)}: ${cause.message}. Correct it, or unset it`)
  })
  return foreign(variable, { version: "unknown", url, managementUrl: undefined })
}

/** Makes an instance, starts its server, and leaves nothing behind if that fails. */
const launch = async (found: installation.Installation, settings: Settings): Promise<Broker> => {
  const { folder: source, version } = found
  const instance = await Instance.make()
  try {
    const server = await node.make(instance, found, settings)
    await server.start()
    instance.note({ broker: "postgres", version, source, url: server.url, nodes: 1 })
    if (settings.detached) await instance.detach()
    return ofNodes([server], { version, source, managementUrl: undefined, dispose: instance.dispose })
  } catch (cause) {
    await instance.dispose()
    throw cause
  }
}

const launchInstalled = async (settings: Settings): Promise<Broker> => {
  const { version } = settings
  const all = version === "system" ? installation.ofSystem() : installation.atHand()
  const found = all.find((one) => !isRelease(version) || isOf(one.version, version))
  if (found !== undefined) return launch(found, settings)
  throw new Unavailable(all.length === 0 ? "none found" : `there is only ${all.map((one) => one.version).join(", ")}`)
}

const launchPackage = async (settings: Settings): Promise<Broker> => {
  const { say, version } = settings
  if (version === "system") throw new Unavailable("the machine's own server was requested")
  return launch(await installation.install(isRelease(version) ? version : undefined, say), settings)
}

export const nodeCounts = [1]

/** Whether the environment names one, or one is installed. */
export const isAtHand = (): boolean => (process.env[variable] ?? "") !== "" || installation.atHand().length > 0

/** Whether the server at this address accepts connections. */
export const answers = (url: string): Promise<boolean> =>
  node.handshake(url).then(
    () => true,
    () => false
  )

export const sources: ReadonlyArray<Source<PostgresStartOptions>> = [
  { name: "the environment", open: (options) => attach(defaults(options)) },
  { name: "an installed server", open: (options) => launchInstalled(defaults(options)) },
  { name: "npm's packages", open: (options) => launchPackage(defaults(options)) }
]

export const remedy = (version = "newest"): string =>
  `No PostgreSQL${isRelease(version) ? ` ${version}` : ""} here. Install postgresql, or set ${variable} to the address ` +
  `of one. Tried:`
