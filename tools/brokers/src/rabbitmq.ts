/** RabbitMQ: where one comes from. */
import { randomBytes } from "node:crypto"
import { handshake, redact } from "./amqp.ts"
import { foreign, ofNodes, Unavailable, type Broker, type Node, type Source, type StartOptions } from "./Broker.ts"
import * as Instance from "./Instance.ts"
import * as debian from "./debian.ts"
import { byAge, isOf, ofSystem, ofTree, type Installation } from "./installation.ts"
import * as localNodes from "./localNodes.ts"

const variable = "REQUEUE_RABBITMQ_URL"

/** The Debian releases that have these versions. */
const debians: { readonly [version: string]: string } = { "3.10": "bookworm", "4.0": "trixie", "4.3": "sid" }
const packageName = "rabbitmq-server"

const attach = async ({ version = "newest", nodes = 1 }: StartOptions): Promise<Broker> => {
  const url = process.env[variable] ?? ""
  if (url === "") throw new Unavailable(`${variable} is not set`)
  if (!/^amqps?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Error(`${variable} must look like amqp://user:password@host:5672/vhost, got "${redact(url)}"`)
  }
  const found = await handshake(url, 10_000).catch((cause: Error) => {
    throw new Error(`${variable}: no connection to ${redact(url)}: ${cause.message}. Correct it, or unset it`)
  })
  if (/^\d/.test(version) && !isOf(found, version)) {
    throw new Error(`${variable}: RabbitMQ ${version} was asked for, ${redact(url)} is ${found}. Unset it`)
  }
  if (nodes > 1) throw new Error(`${variable}: a cluster of ${nodes} nodes cannot be made of one address. Unset it`)
  return foreign(variable, { version: found, url, managementUrl: process.env["REQUEUE_RABBITMQ_MANAGEMENT_URL"] })
}

/** What runs here without a download, newest first. */
const atHand = (): ReadonlyArray<Installation> => {
  const trees = Object.values(debians).map((release) => ofTree(debian.treeOf(release, packageName)))
  return [ofSystem(), ...trees].filter((one) => one !== undefined).toSorted(byAge)
}

const say = (line: string) => console.error(line)

const pick = (version: string): Installation | undefined => {
  if (version === "system") return ofSystem()
  return version === "newest" ? atHand()[0] : atHand().find((one) => isOf(one.version, version))
}

const launch = async (installation: Installation, options: StartOptions): Promise<Broker> => {
  const instance = await Instance.make({ detached: options.detached ?? false })
  try {
    const nodes = localNodes.make(instance, installation, {
      count: options.nodes ?? 1,
      password: randomBytes(8).toString("hex"),
      deadline: options.deadline ?? 60_000
    })
    // At once: the nodes of a cluster look for each other while they start.
    await Promise.all(nodes.map((node) => node.start()))
    const [first, ...others] = nodes as [Node, ...Array<Node>]
    const version = await handshake(first.url, 10_000)
    const source = installation.root ?? installation.scripts
    const { managementUrl } = first
    instance.note({ broker: "rabbitmq", version, source, url: first.url, managementUrl, nodes: nodes.length })
    return ofNodes([first, ...others], { version, source, managementUrl, dispose: instance.dispose })
  } catch (cause) {
    await instance.dispose()
    throw cause
  }
}

export const sources: ReadonlyArray<Source> = [
  { name: "the environment", open: attach },
  {
    name: "an installed server",
    open: async (options) => {
      const found = pick(options.version ?? "newest")
      if (found !== undefined) return launch(found, options)
      const others = atHand().map((one) => one.version)
      throw new Unavailable(others.length === 0 ? "none found" : `there is only ${others.join(", ")}`)
    }
  },
  {
    name: "Debian's packages",
    open: async (options) => {
      const version = options.version ?? "newest"
      const release = debians[version]
      if (/^\d/.test(version) && release === undefined) {
        throw new Unavailable(`of ${Object.keys(debians).join(", ")} only`)
      }
      if (release === undefined) await debian.install(packageName, options.say ?? say)
      const found =
        release === undefined ? ofSystem() : ofTree(await debian.makeTree(release, packageName, options.say ?? say))
      if (found === undefined) throw new Unavailable(`${packageName} was installed, but is not found`)
      if (release === undefined || isOf(found.version, version)) return launch(found, options)
      throw new Unavailable(`Debian ${release} has ${found.version} now`)
    }
  }
]

export const remedy = (version = "newest"): string =>
  `No RabbitMQ${/^\d/.test(version) ? ` ${version}` : ""} here. Install rabbitmq-server, or start Docker, or set ` +
  `${variable} to the address of one. Tried:`
