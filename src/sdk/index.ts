/** Resources in a server that is made with the official SDK. Nothing of the SDK is imported: its servers are taken as they are. */
export { type Attached, type AttachOptions, type AttachSource, attach } from './attach.ts'
export type { AttachableServer, SdkServer } from './sdk-server.ts'
