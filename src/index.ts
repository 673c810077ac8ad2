/** The toolkit: the interface of providers, and the catalog that mounts them. `hikidashi/server` serves a catalog. */
export { type Access, type AccessRule, compileAccess } from './core/access.ts'
export { type Catalog, type CatalogOptions, createCatalog, type Mount } from './core/catalog.ts'
export type { ChangeLimits, DegradedMount } from './core/changes.ts'
export {
  type ErrorDetail,
  type ErrorKind,
  type ErrorReason,
  invalid,
  isResourceError,
  notFound,
  ResourceError,
} from './core/errors.ts'
export type { Log, LogLevel } from './core/log.ts'
export { comparePaths, isPath } from './core/path.ts'
export type {
  Audience,
  ByteRange,
  Change,
  Completion,
  CompletionRequest,
  Content,
  Context,
  Degradation,
  Description,
  Entry,
  FilledPrompt,
  Icon,
  ListQuery,
  Params,
  Principal,
  Prompt,
  PromptArgument,
  PromptMessage,
  PromptPart,
  PromptRequest,
  Prompts,
  Provider,
  ReadRequest,
  Template,
} from './core/provider.ts'
export { compileTemplate } from './core/template.ts'
export { fileAddress } from './core/uri.ts'
export type {
  CacheHint,
  CallOptions,
  ListedArgument,
  ListedPrompt,
  Page,
  PromptCompletionRequest,
  PromptContent,
  PromptView,
  ReadResult,
  Resource,
  ResourceContent,
  ResourceTemplate,
  View,
  ViewCompletionRequest,
  ViewPromptRequest,
} from './core/view.ts'
