export { defaultLimits, type HttpLimits, type PrincipalLimits } from './admission/limits.ts'
export type { AuthorizationOptions, Issuer, RoleRule, ScopeRule } from './auth/claims.ts'
export type { ContentLinkOptions } from './http/content/links.ts'
export {
  createHandler,
  type Handler,
  type HandlerCall,
  type HandlerOptions,
  type HandlerSource,
} from './http/handler.ts'
export type { PostEndpoints } from './http/other-routes.ts'
export { type HttpOptions, type HttpService, serveHttp } from './http/serve-http.ts'
export { ProtocolError, revisions } from './messages/messages.ts'
export type { ServerDescription } from './protocol/bind.ts'
export type { ExtraMethod, MethodCall } from './protocol/method.ts'
export { localPrincipal, type ServeOptions } from './serve.ts'
export { type StdioOptions, serveStdio } from './stdio/serve-stdio.ts'
export type { Audit, AuditRecord } from './telemetry/audit.ts'
export { type AuditFile, type AuditFileOptions, openAuditFile } from './telemetry/audit-file.ts'
export { type Meter, type MeterName, meterNames } from './telemetry/meter.ts'
