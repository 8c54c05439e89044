/** The entry of programs whose handlers were written for Cloudflare Queues: `@requeue/core/cloudflare`. */
export * from "./faces/Cloudflare.ts"
