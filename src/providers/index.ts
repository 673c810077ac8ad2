/** Every provider that a configuration can name, with the module that makes it. Nothing is loaded until it is mounted. */
export const providers = {
  env: () => import('./env/index.ts'),
  files: () => import('./files/index.ts'),
  git: () => import('./git/index.ts'),
  settings: () => import('./settings/index.ts'),
} as const

/** The name of a provider, as a configuration has it. */
export type ProviderName = keyof typeof providers
