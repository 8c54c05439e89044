/**
 * A proxy in front of a server for tests. It is as strict as AWS, and fails as AWS does when a test requests it. It speaks the
 * JSON protocol: https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { Unavailable } from "../../Broker.ts"
import { parse } from "../address.ts"
import * as Answer from "./answer.ts"
import { denied, named, send, type AwsError, type ErrorName } from "./AwsError.ts"
import * as Call from "./Call.ts"
import * as Faults from "./faults.ts"
import type { SqsBroker } from "../SqsNode.ts"
import * as signature from "./signature.ts"
import * as upstream from "./upstream.ts"

/** A running proxy. */
export interface StrictSqs extends AsyncDisposable {
  /** The address to connect to. */
  readonly url: string
  /** The numbers of API calls since the start, by action. Refused calls count, because AWS bills them. */
  readonly calls: () => Readonly<Record<string, number>>
  /** The session tokens of the calls since the start, each once. */
  readonly tokens: () => ReadonlyArray<string>
  /** Answers calls with an error instead of doing them. Default: RequestThrottled. */
  readonly fail: (where: Faults.Where, error?: ErrorName) => Faults.Fault
  /** Fails the first entries of batches instead of doing them. Default: InternalFailure. */
  readonly failEntries: (where: Faults.Where, entries: number, error?: ErrorName) => Faults.Fault
  /** Does calls without a reply; with `reset` the connection breaks as well. Default: silence. */
  readonly lose: (where: Faults.Where, how?: "silence" | "reset") => Faults.Fault
  /** Does calls, and replaces their replies by the function's results. */
  readonly rewrite: (where: Faults.Where, rewrite: (reply: string) => string) => Faults.Fault
  /** Neither does calls nor replies to them. */
  readonly ignore: (where: Faults.Where) => Faults.Fault
  /** Delays calls, and does them when `release` is called, even if their client is gone. */
  readonly hold: (where: Faults.Where) => Faults.Fault & { readonly release: () => void }
  /** Delivers the next messages once more, though they are in flight. */
  readonly duplicate: (messages: number) => void
  /**
   * Denies these actions from now on, and no others; `DeleteMessage` denies `DeleteMessageBatch` as well. `queue` limits this to
   * one queue. Default: all queues.
   */
  readonly deny: (actions: ReadonlyArray<string>, queue?: string) => void
  /** Removes all faults. */
  readonly clear: () => void
  /** Moves the clock of the proxy and of the server behind it. */
  readonly forward: (milliseconds: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** The limits of the proxy. */
export interface StrictOptions {
  /** The quota of messages of one queue in flight. Default: 120,000, as on AWS. */
  readonly inFlight?: number
}

/** Sends a reply, in which the proxy's address replaces that of the server behind. */
const reply = (
  response: ServerResponse,
  result: upstream.Reply | AwsError,
  port: number,
  rewrite = (text: string): string => text
): void => {
  if ("code" in result) return send(response, result)
  const own = (url: unknown) => (typeof url === "string" ? `http://127.0.0.1:${port}${new URL(url).pathname}` : url)
  const { QueueUrl, QueueUrls, queueUrls } = result.body
  const urls = {
    ...(QueueUrl === undefined ? {} : { QueueUrl: own(QueueUrl) }),
    ...(Array.isArray(QueueUrls) ? { QueueUrls: QueueUrls.map(own) } : {}),
    ...(Array.isArray(queueUrls) ? { queueUrls: queueUrls.map(own) } : {})
  }
  response.writeHead(result.status, { "content-type": "application/x-amz-json-1.0", ...result.headers })
  response.end(rewrite(JSON.stringify({ ...result.body, ...urls })))
}

/**
 * Starts a proxy in front of a broker of `start("sqs")`.
 *
 * Long, because each fault is a line of the result.
 */
export const strictSqs = async (broker: SqsBroker, { inFlight = 120_000 }: StrictOptions = {}): Promise<StrictSqs> => {
  const { credentials, endpoint, region = "" } = parse(broker.url) ?? {}
  if (endpoint === undefined || credentials === undefined) {
    throw new Unavailable("strictSqs needs a server with an address and credentials")
  }
  let ahead = 0
  const faults = Faults.make()
  const aws = Answer.make({ now: () => Date.now() + ahead, region, inFlight })
  const counts: Record<string, number> = {}
  const tokens = new Set<string>()
  let refused: { readonly actions: ReadonlyArray<string>; readonly queue?: string | undefined } = { actions: [] }
  const isDenied = (call: Call.Call): boolean =>
    refused.actions.includes(Call.single(call)) && (refused.queue ?? call.queue) === call.queue

  const answer = async (call: Call.Call, ask: upstream.Ask, fault: Faults.Effect | undefined) => {
    if (fault?.kind === "refuse") return named(fault.error)
    if (isDenied(call)) return denied(Call.single(call), `arn:aws:sqs:${region}:000000000000:${call.queue}`)
    return aws.answer(call, ask, (index) =>
      fault?.kind === "refuseEntries" && index < fault.entries ? named(fault.error) : undefined
    )
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const bytes = await buffer(request)
    const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "")
    counts[action] = (counts[action] ?? 0) + 1
    const token = request.headers["x-amz-security-token"]
    if (typeof token === "string") tokens.add(token)
    const stranger = signature.refused(request, bytes, { ...credentials, region })
    if (stranger !== undefined) return send(response, stranger)
    const body: Call.Body = JSON.parse(bytes.toString())
    const call = Call.make(action, body)
    const fault = faults.take(call)
    if (fault?.kind === "ignore") return
    if (fault?.kind === "hold") await fault.until
    // Continues when the client is gone: AWS finishes a long poll as well, and its messages are in flight then.
    const result = await answer(call, (...args) => upstream.call(endpoint, request.headers, ...args), fault)
    if (fault?.kind !== "lose") reply(response, result, port, fault?.kind === "rewrite" ? fault.rewrite : undefined)
    else if (fault.how === "reset") request.socket.resetAndDestroy()
  }

  const server = createServer((request, response) => {
    // A killed server behind does not reply; neither does the proxy.
    void handle(request, response).catch(() => request.socket.destroy())
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo // the address of a TCP server
  const url = new URL(broker.url)
  url.host = `127.0.0.1:${port}`

  const close = async () => {
    aws.close()
    const closed = once(server, "close")
    server.close()
    server.closeAllConnections()
    await closed
  }
  return {
    url: url.href,
    calls: () => ({ ...counts }),
    tokens: () => [...tokens],
    fail: (where, error = "RequestThrottled") => faults.add(where, { kind: "refuse", error }),
    failEntries: (where, entries, error = "InternalFailure") =>
      faults.add(where, { kind: "refuseEntries", error, entries }),
    rewrite: (where, rewrite) => faults.add(where, { kind: "rewrite", rewrite }),
    lose: (where, how = "silence") => faults.add(where, { kind: "lose", how }),
    ignore: (where) => faults.add(where, { kind: "ignore" }),
    hold: (where) => {
      const { promise: until, resolve: release } = Promise.withResolvers<void>()
      return { ...faults.add(where, { kind: "hold", until }), release }
    },
    duplicate: aws.duplicate,
    deny: (actions, queue) => void (refused = { actions, queue }),
    clear: faults.clear,
    forward: async (milliseconds) => {
      const move = broker.nodes[0]?.forward
      if (move === undefined) throw new Unavailable("forward needs a fauxqs that was started here")
      await move(milliseconds)
      ahead += milliseconds
    },
    close,
    [Symbol.asyncDispose]: close
  }
}
