/** The flags of an nsqd, with the defaults of nsqd. https://nsq.io/components/nsqd.html */

/** Times in milliseconds, sizes in bytes. */
export interface Flags {
  /** `--mem-queue-size`: how many messages each topic and each channel keeps in memory. */
  readonly memQueueSize: number
  /** `--sync-every`: messages on disk, written or read, until their positions are synced. */
  readonly syncEvery: number
  readonly msgTimeout: number
  readonly maxMsgTimeout: number
  readonly maxReqTimeout: number
  readonly maxMsgSize: number
  readonly maxBodySize: number
  readonly maxRdyCount: number
  readonly maxHeartbeatInterval: number
  /** `--max-channel-consumers`; 0: no limit. */
  readonly maxChannelConsumers: number
  readonly queueScanInterval: number
  /** Channels that one scan selects at random. */
  readonly queueScanSelectionCount: number
}

export const defaults: Flags = {
  memQueueSize: 10_000,
  syncEvery: 2500,
  msgTimeout: 60_000,
  maxMsgTimeout: 900_000,
  maxReqTimeout: 3_600_000,
  maxMsgSize: 1024 * 1024,
  maxBodySize: 5 * 1024 * 1024,
  maxRdyCount: 2500,
  maxHeartbeatInterval: 60_000,
  maxChannelConsumers: 0,
  queueScanInterval: 100,
  queueScanSelectionCount: 20
}

/** Milliseconds between two scans for new channels; no flag sets it. */
export const queueScanRefreshInterval = 5000

/** The flags that limit what a client may request for its connection, and have no option here. */
export const connection = { minOutputBufferTimeout: 25, maxOutputBufferTimeout: 30_000, outputBufferSize: 16_384 }

/** The names of the flags that `GET /config` reports, in nanoseconds for times. */
export const configured = (flags: Flags): Readonly<Record<string, number>> => ({
  mem_queue_size: flags.memQueueSize,
  msg_timeout: flags.msgTimeout * 1e6,
  max_msg_timeout: flags.maxMsgTimeout * 1e6,
  max_req_timeout: flags.maxReqTimeout * 1e6,
  max_msg_size: flags.maxMsgSize,
  max_body_size: flags.maxBodySize,
  max_rdy_count: flags.maxRdyCount,
  max_channel_consumers: flags.maxChannelConsumers,
  queue_scan_interval: flags.queueScanInterval * 1e6,
  queue_scan_selection_count: flags.queueScanSelectionCount
})
