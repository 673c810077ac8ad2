import { startDriveMount } from '../drive-samples.ts'

export const start = startDriveMount
