/** The sources of servers that speak the protocol of SQS. */
import { randomBytes } from "node:crypto"
import { redact } from "./amqp.ts"
import { foreign, ofNodes, settingsOf, Unavailable, type Source, type StartOptions } from "./Broker.ts"
import * as docker from "./docker.ts"
import * as Instance from "./Instance.ts"
import { parse } from "./sqs/address.ts"
import * as dockerNode from "./sqs/dockerNode.ts"
import * as elasticmq from "./sqs/elasticmq.ts"
import * as fauxqs from "./sqs/fauxqs.ts"
import { handshake } from "./sqs/handshake.ts"
import * as moto from "./sqs/moto.ts"
import * as Server from "./sqs/Server.ts"
import type { SqsBroker, SqsNode } from "./sqs/SqsNode.ts"

const variable = "REQUEUE_SQS_URL"

export const nodeCounts = [1]

/** The servers that `version` may name. */
export const servers = ["fauxqs", "elasticmq", "moto"] as const
type Name = (typeof servers)[number]

const defaults = (options: StartOptions) => ({ ...settingsOf(options), secret: randomBytes(8).toString("hex") })

type Settings = ReturnType<typeof defaults>

/** Makes an instance, starts its server, and leaves nothing behind if that fails. */
const launch = async (
  version: string,
  source: string,
  settings: Settings,
  make: (instance: Instance.Instance) => SqsNode | Promise<SqsNode>
): Promise<SqsBroker> => {
  const instance = await Instance.make()
  try {
    const node = await make(instance)
    await node.start()
    instance.note({ broker: "sqs", version, source, url: node.url, nodes: 1 })
    if (settings.detached) await instance.detach()
    return ofNodes([node], { version, source, managementUrl: undefined, dispose: instance.dispose })
  } catch (cause) {
    await instance.dispose()
    throw cause
  }
}

const launchProcess = (server: Server.Server, settings: Settings) =>
  launch(`${server.name} ${server.version}`, server.source, settings, (instance) =>
    Server.make(instance, server, settings)
  )

const attach = async (): Promise<SqsBroker> => {
  const url = process.env[variable] ?? ""
  if (url === "") throw new Unavailable(`${variable} is not set`)
  if (parse(url) === undefined) {
    const forms = "sqs://key:secret@host:9324?region=eu-west-1, or sqs://eu-west-1 for AWS"
    throw new Error(`${variable} must look like ${forms}, got "${redact(url)}"`)
  }
  await handshake(url).catch((cause: Error) => {
    throw new Error(`${variable}: no answer from ${redact(url)}: ${cause.message}. Correct it, or unset it`)
  })
  return foreign(variable, { version: "unknown", url, managementUrl: undefined })
}

const launchContainer = async (settings: Settings): Promise<SqsBroker> => {
  await docker.needsEngine()
  const image = `softwaremill/elasticmq-native:${elasticmq.version}`
  return launch(`elasticmq ${elasticmq.version}`, image, settings, (instance) =>
    dockerNode.make(instance, { ...settings, image })
  )
}

/** Makes a source that is tried when `version` names its server, or no server. */
const source = (
  name: string,
  server: Name,
  open: (settings: Settings) => Promise<SqsBroker>
): Source<StartOptions, SqsBroker> => ({
  name,
  open: async (options) => {
    const { version = "newest" } = options
    if (version !== "newest" && version !== server) throw new Unavailable(`${version} was requested`)
    return open(defaults(options))
  }
})

export const sources: ReadonlyArray<Source<StartOptions, SqsBroker>> = [
  {
    name: "the environment",
    open: async ({ version = "newest" }) => {
      if (version !== "newest") throw new Unavailable(`${version} was requested`)
      return attach()
    }
  },
  source("fauxqs", "fauxqs", (settings) => launchProcess(fauxqs.server, settings)),
  source("ElasticMQ on Java", "elasticmq", async (settings) =>
    launchProcess(await elasticmq.install(settings.say), settings)
  ),
  source("ElasticMQ in Docker", "elasticmq", launchContainer),
  source("moto", "moto", async (settings) => launchProcess(await moto.install(settings.say), settings))
]

/** Whether the server at this address answers. */
export const answers = (url: string): Promise<boolean> =>
  handshake(url).then(
    () => true,
    () => false
  )

export const remedy = (version = "newest"): string =>
  `No SQS server${version === "newest" ? "" : ` ${version}`} here. Ask for ${servers.join(", ")}, or set ${variable} ` +
  `to the address of one. Tried:`
