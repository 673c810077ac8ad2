/** Every provider that a configuration can name, with the module that makes it. Nothing is loaded until it is mounted. */
export const providers = {
  env: () => import('./env/index.ts'),
  files: () => import('./files/index.ts'),
  gcs: () => import('./gcs/index.ts'),
  git: () => import('./git/index.ts'),
  postgres: () => import('./postgres/index.ts'),
  results: () => import('./results/index.ts'),
  s3: () => import('./s3/index.ts'),
  metrics: () => import('./metrics/index.ts'),
  settings: () => import('./settings/index.ts'),
} as const

/** The name of a provider, as a configuration has it. */
export type ProviderName = keyof typeof providers
