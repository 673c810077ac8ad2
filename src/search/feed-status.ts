export type { FeedStatus, MountProgress, MountState } from '../core/feed-status.ts'
