export { lazily } from '../shell/lazily.tsx'
