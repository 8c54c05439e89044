/** Work inside one process: handle so many messages, so many at a time, with a handler that awaits nothing. */
export interface Memory {
  readonly messages: number
  readonly warmUp: number
  readonly concurrency: number
  /** Messages behind those that are counted. Default 0. */
  readonly backlog?: number
}
