/** The used part of nsqjs's API, which has no types. */
declare module "nsqjs" {
  interface Message {
    readonly id: string
    readonly attempts: number
    readonly body: Buffer
    json(): unknown
    finish(): void
    requeue(delay: number, backoff: boolean): void
  }

  export class Reader {
    constructor(
      topic: string,
      channel: string,
      options: { readonly nsqdTCPAddresses: ReadonlyArray<string>; readonly maxInFlight: number }
    )
    on(event: "message", listener: (message: Message) => void): void
    on(event: "error", listener: (error: Error) => void): void
    connect(): void
    close(): void
  }

  export class Writer {
    constructor(host: string, port: number)
    on(event: "ready", listener: () => void): void
    on(event: "error", listener: (error: Error) => void): void
    connect(): void
    publish(topic: string, message: Buffer, callback: (error: Error | null | undefined) => void): void
    close(): void
  }
}
