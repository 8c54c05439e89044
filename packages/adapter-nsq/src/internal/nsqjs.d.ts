/** Types of the parts of nsqjs that are used: it has none for its connections. */
declare module "nsqjs" {
  import type { EventEmitter } from "node:events"
  import type { Socket } from "node:net"
  import type { Duplex, Writable } from "node:stream"

  export interface ConnectionOptions {
    readonly clientId: string
    readonly authSecret: string | null
    readonly deflate: boolean
    readonly snappy: boolean
    /** Seconds. */
    readonly heartbeatInterval: number
    /** Milliseconds; `null` for nsqd's default. */
    readonly messageTimeout: number | null
    /** Milliseconds. */
    readonly outputBufferTimeout: number
    readonly tls: boolean
  }

  export class NSQDConnection extends EventEmitter {
    constructor(host: string, port: number, topic: string, channel: string, options: ConnectionOptions)
    readonly nsqdHost: string
    maxRdyCount: number
    /** Milliseconds. */
    msgTimeout: number
    /** Milliseconds. */
    maxMsgTimeout: number
    nsqdVersion: string | null
    /** The socket, or TLS over it; `null` until one turn of the event loop after `connect`. */
    conn: Socket | null
    /** Where commands go: the socket, or the compressor in front of it. */
    outWriter: Writable
    readonly config: { readonly clientId: string; authSecret: string | null }
    /** Received bytes that are not yet a whole frame, or not yet handled. */
    readonly frameBuffer: { readonly buffer?: Buffer }
    readonly statemachine: { raise(event: string, data?: unknown): unknown }
    clearIdentifyTimeout(): void
    identifyTimeout(): void
    connect(): void
    createMessage(payload: Buffer): unknown
    identify(): Record<string, unknown>
    receiveData(data: Buffer): void
    registerStreamListeners(stream: Duplex): void
    startCompression(inflater: Duplex, deflater: Duplex): void
    startTLS(callback?: () => void): void
  }

  export class WriterNSQDConnection extends NSQDConnection {
    constructor(host: string, port: number, options: ConnectionOptions)
    /** Called with nsqd's answers to publishes, in order; all with an error when the connection ends. */
    messageCallbacks: Array<(error: Error | null) => void>
  }
}
