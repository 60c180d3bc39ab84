;; An offload in WebAssembly's text form: sums words of the caller's memory, and counts in memory of its own.
;;
;; function 1: arguments are an address (8 bytes) and a number of words (4 bytes); the result is their sum (8 bytes).
;; function 2: arguments are what to add to the offload's counter (8 bytes); no results.
;; function 3: the result is the counter (8 bytes).
(module
  (import "clio" "arguments" (func $arguments (param i32)))
  (import "clio" "read" (func $read (param i32 i64 i32 i32) (result i32)))
  (import "clio" "write" (func $write (param i32 i64 i32 i32) (result i32)))
  (import "clio" "result" (func $result (param i32 i32)))
  (import "clio" "own_start" (func $own_start (result i64)))

  ;; Arguments at 0, the result or counter at 2048, words that are being summed from 4096 on.
  (memory (export "memory") 1)

  (func (export "call") (param $function i32) (param $bytes i32) (result i32)
    (call $arguments (i32.const 0))
    (if (i32.eq (local.get $function) (i32.const 1))
      (then
        (if (i32.ne (local.get $bytes) (i32.const 12)) (then (return (i32.const 3)))) ;; bad length
        (return (call $sum (i64.load (i32.const 0)) (i32.load (i32.const 8))))))
    (if (i32.eq (local.get $function) (i32.const 2))
      (then
        (if (i32.ne (local.get $bytes) (i32.const 8)) (then (return (i32.const 3))))
        (return (call $add (i64.load (i32.const 0))))))
    (if (i32.eq (local.get $function) (i32.const 3))
      (then (return (call $counter))))
    (i32.const 12)) ;; no such offload or function

  ;; Sums words from an address on, 512 with each read.
  (func $sum (param $address i64) (param $words i32) (result i32)
    (local $sum i64) (local $now i32) (local $at i32) (local $status i32)
    (loop $reads
      (if (local.get $words)
        (then
          (local.set $now (select (local.get $words) (i32.const 512)
            (i32.lt_u (local.get $words) (i32.const 512))))
          (local.set $status (call $read (i32.const 1) (local.get $address) (i32.const 4096)
            (i32.shl (local.get $now) (i32.const 3))))
          (if (local.get $status) (then (return (local.get $status))))
          (local.set $address (i64.add (local.get $address)
            (i64.extend_i32_u (i32.shl (local.get $now) (i32.const 3)))))
          (local.set $words (i32.sub (local.get $words) (local.get $now)))
          (local.set $at (i32.const 4096))
          (loop $words_of_read
            (local.set $sum (i64.add (local.get $sum) (i64.load (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (local.set $now (i32.sub (local.get $now) (i32.const 1)))
            (br_if $words_of_read (local.get $now)))
          (br $reads))))
    (i64.store (i32.const 2048) (local.get $sum))
    (call $result (i32.const 2048) (i32.const 8))
    (i32.const 0))

  ;; Reads the counter to 2048.
  (func $get (result i32)
    (call $read (i32.const 0) (call $own_start) (i32.const 2048) (i32.const 8)))

  (func $add (param $more i64) (result i32)
    (local $status i32)
    (local.set $status (call $get))
    (if (local.get $status) (then (return (local.get $status))))
    (i64.store (i32.const 2048) (i64.add (i64.load (i32.const 2048)) (local.get $more)))
    (call $write (i32.const 0) (call $own_start) (i32.const 2048) (i32.const 8)))

  (func $counter (result i32)
    (local $status i32)
    (local.set $status (call $get))
    (if (local.get $status) (then (return (local.get $status))))
    (call $result (i32.const 2048) (i32.const 8))
    (i32.const 0)))
