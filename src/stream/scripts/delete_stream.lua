-- Deletes a stream, and nothing that is no stream.
--
-- KEYS[1]: the stream. Returns 1, or 0 if there was none.

redis.call('XLEN', KEYS[1])  -- answers WRONGTYPE, which ends the script
return redis.call('UNLINK', KEYS[1])
