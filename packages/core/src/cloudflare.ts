/** What a program imports whose handler was written for Cloudflare Queues: `@requeue/core/cloudflare`. */
export * from "./faces/Cloudflare.ts"
