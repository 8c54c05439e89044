/** Passwords in URLs: the driver gets exactly what was meant, or the start fails with an error that shows none of it. */
import { NsqOptions } from "@requeue/adapter-nsq"
import { RabbitMqOptions } from "@requeue/adapter-rabbitmq"
import { SqsOptions } from "@requeue/adapter-sqs"
import { Configuration } from "@requeue/config"
import { BrokerSource, Console } from "@requeue/console"
import { Adapters, Broker, BrokerError } from "@requeue/core"
import { type Adapter } from "@requeue/core/port"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterAll, assert, describe, it } from "vitest"
import { unreachable } from "../src/ExitCode.ts"
import { requeue } from "./requeue.ts"

const passwords = process.env["REQUEUE_CAMPAIGNS"] === "1" ? 10_000 : 30

/** What a driver would log in with, in the words of its adapter; the whole URL must have been read as it was meant. */
const decoders: Readonly<Record<string, (options: object) => string | undefined>> = {
  amqp: (options) => {
    const { hostname, password, port, username, vhost } = Result.getOrThrow(RabbitMqOptions.decode(options)).address
    assert.deepStrictEqual([username, hostname, port, vhost], ["me", "127.0.0.1", 1, "/"])
    return Redacted.value(password)
  },
  nsq: (options) => {
    const { nsqd, secret } = Result.getOrThrow(NsqOptions.decode({ authInClear: true, ...options }))
    assert.deepStrictEqual([nsqd[0]?.host, nsqd[0]?.port, nsqd.length], ["127.0.0.1", 1, 1])
    return secret && Redacted.value(secret)
  },
  sqs: (options) => {
    const { credentials, endpoint } = Result.getOrThrow(SqsOptions.decode(options as SqsOptions.Options)).address
    assert.deepStrictEqual([credentials?.accessKeyId, endpoint], ["me", "http://127.0.0.1:1"])
    return credentials && Redacted.value(credentials.secretAccessKey)
  }
}

const templates: Readonly<Record<string, (password: string) => string>> = {
  amqp: (password) => `amqp://me:${password}@127.0.0.1:1`,
  nsq: (password) => `nsq://:${password}@127.0.0.1:1`,
  sqs: (password) => `sqs://me:${password}@127.0.0.1:1?region=eu-west-1`
}
const schemes = Object.keys(templates)

/** Numbers from 0 to 1, the same ones every time. */
const randoms = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}

const awkward =
  "@ @evil.example:1/ / // /.. /./ ? ?prefix= &region= # : :1 :5672/ \\ % %41 %zz %2 %ff %c3%28 ${HOME} $HOME ${X} + = & ; , ! ' \" ` < > [ ] { } | ^ ~ * ( ) é ß 漢 🐇".split(
    " "
  )
const invisible = [" ", "\t", "\n", "\r", "\u0001", "\u007f", "\u00a0", "\ufeff"]

/** A password, and texts in it that stand nowhere else. */
const generate = (random: () => number): { readonly password: string; readonly marks: ReadonlyArray<string> } => {
  const pick = (list: ReadonlyArray<string>) => list[Math.floor(random() * list.length)]!
  const mark = () => Array.from({ length: 7 }, () => pick("qxzjkvw0123456789".split(""))).join("")
  const marks = [mark(), mark(), mark()]
  const between = () =>
    Array.from({ length: Math.floor(random() * 4) }, () => pick(random() < 0.8 ? awkward : invisible))
  const password = [...between(), ...marks.flatMap((each) => [each, ...between()])].join("")
  // SQS refuses a secret that ends with a line break.
  return { password: password.replace(/[\r\n]+$/, ""), marks }
}

const samples = (seed: number) => {
  const random = randoms(seed)
  return Array.from({ length: passwords }, () => generate(random))
}

type Sample = ReturnType<typeof generate>

const hides = ({ marks }: Sample, shown: string) => {
  for (const mark of marks) assert.notInclude(shown.toLowerCase(), mark, "an error shows a part of a password")
}

/** All that an error can be printed as. */
const printed = (error: unknown): string =>
  [String(error), inspect(error, { depth: 9 }), JSON.stringify(error), error instanceof Error ? error.stack : ""].join(
    "\n"
  )

/** The errors that stand for "the start fails". An assertion of a decoder is none. */
const isRefusal = (error: unknown): boolean =>
  error instanceof Error && ["ConfigurationError", "ConfigFileError"].includes(error.name)

/** Holds a way in to the property. Answers how many passwords arrived. */
const holds = async (
  scheme: string,
  tried: ReadonlyArray<Sample>,
  arrive: (sample: Sample) => Promise<string | undefined>
) => {
  let arrived = 0
  for (const sample of tried) {
    try {
      assert.strictEqual(await arrive(sample), sample.password, scheme)
      arrived++
    } catch (error) {
      if (!isRefusal(error)) throw error
      hides(sample, printed(error))
    }
  }
  return arrived
}

/** An adapter that keeps what the real one would be given, and then is a broker that cannot be reached. */
const probes = () => {
  const seen: { options: object | undefined } = { options: undefined }
  const adapter: Adapter.Adapter = {
    schemes,
    layer: (url, options) => {
      seen.options = { ...options, url }
      return Layer.effect(Broker.Broker, Effect.die(new Error("the probe")))
    }
  }
  return { seen, adapters: [adapter] }
}

/** Opens a broker, and reads the password as the adapter would. */
const opened = async (scheme: string, open: (adapters: ReadonlyArray<Adapter.Adapter>) => Promise<unknown>) => {
  const { adapters, seen } = probes()
  await open(adapters).catch((error: unknown) => {
    if (!String(error).includes("the probe")) throw error
  })
  assert.isDefined(seen.options)
  return decoders[scheme]!(seen.options!)
}

const layerEnds = (layer: Layer.Layer<Broker.Broker, unknown>) =>
  Effect.runPromise(Effect.scoped(Effect.provide(Effect.void, layer)))

/** In a URL that is written by hand, `%` and two digits are a character: then it is no password as it is. */
const isEscaped = ({ password }: Sample) => /%[0-9a-f]{2}/i.test(password)

const faces: Readonly<Record<string, (url: string) => (adapters: ReadonlyArray<Adapter.Adapter>) => Promise<unknown>>> =
  {
    "connect(url)": (url) => (adapters) => connect(url, { adapters }),
    "connect({ url })": (url) => (adapters) => connect({ url: Redacted.make(url) }, { adapters }),
    "Adapters.layer(url)": (url) => (adapters) => layerEnds(Adapters.layer(url, { adapters }))
  }

describe.each(schemes)("a password for %s", (scheme) => {
  const url = templates[scheme]!

  it("in the adapter's own options", async () => {
    const raw = samples(1).filter((sample) => !isEscaped(sample))
    const decode = (text: string) => Promise.resolve().then(() => decoders[scheme]!({ url: text }))
    assert.isAbove(await holds(scheme, raw, ({ password }) => decode(url(password))), raw.length / 20)
    const encoded = samples(2)
    const arrived = await holds(scheme, encoded, ({ password }) => decode(url(encodeURIComponent(password))))
    assert.strictEqual(arrived, encoded.length)
  })

  it.each(Object.keys(faces))("in %s", async (face) => {
    const open = (text: string) => opened(scheme, faces[face]!(text))
    const raw = samples(3).filter((sample) => !isEscaped(sample))
    assert.isAbove(await holds(scheme, raw, ({ password }) => open(url(password))), raw.length / 20)
    const encoded = samples(4)
    const arrived = await holds(scheme, encoded, ({ password }) => open(url(encodeURIComponent(password))))
    assert.strictEqual(arrived, encoded.length)
  })
})

const folder = mkdtempSync(join(tmpdir(), "requeue-passwords-"))
afterAll(() => rmSync(folder, { recursive: true }))
const brokers = Object.fromEntries(schemes.map((scheme) => [scheme, templates[scheme]!("${PASSWORD}")]))
const queues = Object.fromEntries(schemes.map((broker) => [broker, { broker }]))
writeFileSync(join(folder, "requeue.config.json"), JSON.stringify({ brokers, queues }))

const configured = (scheme: string, environment: Readonly<Record<string, string>>) =>
  opened(scheme, async (adapters) => {
    const config = await Effect.runPromise(Configuration.load({ cwd: folder, adapters, environment }))
    await layerEnds(config.layer(scheme))
  })

describe.each(schemes)("a password of a config file for %s", (scheme) => {
  it("from ${PASSWORD} arrives, whatever it is", async () => {
    const tried = samples(5)
    assert.strictEqual(
      await holds(scheme, tried, ({ password }) => configured(scheme, { PASSWORD: password })),
      tried.length
    )
  })

  it("in a variable that overrides the URL", async () => {
    const tried = samples(6).filter((sample) => !isEscaped(sample))
    const name = `REQUEUE_BROKERS_${scheme.toUpperCase()}_URL`
    await holds(scheme, tried, ({ password }) =>
      configured(scheme, { [name]: templates[scheme]!(password), HOME: "/root" })
    )
  })
})

/** An adapter that repeats its URL and its password in its error. */
const leaking: Adapter.Adapter = {
  schemes,
  layer: (url) => {
    const detail = `cannot open ${url.href} by ${decodeURIComponent(url.password)}`
    const error = new BrokerError.BrokerError({
      broker: "leaking",
      operation: "connect",
      reason: "ConnectionFailed",
      detail
    })
    return Layer.effect(Broker.Broker, Effect.fail(error))
  }
}

const overview = (environment: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const config = yield* Configuration.load({ cwd: folder, adapters: [leaking], environment })
    const brokers = yield* BrokerSource.ofConfiguration(config)
    const { fetch } = yield* Console.make({ brokers, audit: () => {} })
    const request = new Request("http://localhost:4747/", { headers: { host: "localhost:4747" } })
    const response = yield* Effect.promise(() => fetch(request, { address: "127.0.0.1" }))
    return yield* Effect.promise(() => response.text())
  }).pipe(Effect.scoped, Effect.runPromise)

/** As many for each scheme as make `passwords` together: these ways in are slow. */
const share = Math.ceil(passwords / schemes.length)

it.each(schemes)("the console for %s shows none of a password", async (scheme) => {
  let seen = 0
  for (const sample of samples(9).slice(0, share)) {
    for (const environment of [
      { PASSWORD: sample.password },
      { [`REQUEUE_BROKERS_${scheme.toUpperCase()}_URL`]: templates[scheme]!(sample.password) }
    ]) {
      const page = await overview(environment)
      hides(sample, page)
      if (page.includes("cannot open")) seen++
    }
  }
  assert.isAtLeast(seen, share)
})

it.each(schemes)("the command for %s shows none of a password", async (scheme) => {
  const tried = async (sample: Sample) => {
    const url = templates[scheme]!(sample.password)
    hides(sample, (await requeue(["plan", "--queue", "orders", "--url", url])).both)
    const { both, code } = await requeue(["plan", "--queue", scheme], {
      cwd: folder,
      env: { PASSWORD: sample.password }
    })
    hides(sample, both)
    assert.strictEqual(code, unreachable, both) // Nothing listens there.
  }
  const left = samples(7).slice(0, share)
  // Five at a time, because most of a run is waiting between attempts to connect.
  while (left.length > 0) await Promise.all(left.splice(0, 5).map(tried))
})

it("a password in the URL of RabbitMQ's management interface", async () => {
  const management = (password: string) => `http://me:${password}@broker.example:15672`
  const raw = samples(8).filter((sample) => !isEscaped(sample))
  await holds("http", raw, ({ password }) =>
    Promise.resolve().then(() => {
      const settings = Result.getOrThrow(RabbitMqOptions.decode({ management: management(password) }))
      const url = new URL(Redacted.value(settings.management!))
      assert.strictEqual(url.host, "broker.example:15672")
      return decodeURIComponent(url.password)
    })
  )
})
