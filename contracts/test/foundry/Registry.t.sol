// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {InvoiceRegistry, Terms} from "../../src/InvoiceRegistry.sol";
import {TestUSDC} from "../../src/TestUSDC.sol";
import {Base, OddToken, Vm} from "./Base.sol";

contract RegistryTest is Base {
    InvoiceRegistry private registry;
    TestUSDC private token;
    OddToken private odd;
    address private payer;

    function setUp() public {
        registry = new InvoiceRegistry(address(this), address(this));
        token = new TestUSDC(address(this));
        odd = new OddToken();
        payer = vm.addr(PAYER_KEY);
        token.mint(payer, 1e12);
        odd.mint(payer, 1e12);
        vm.prank(payer);
        token.approve(address(registry), 1e12);
        vm.prank(payer);
        odd.approve(address(registry), 1e12);
        vm.warp(1000);
    }

    function terms(address asset, uint256 amount) private pure returns (Terms memory) {
        return Terms(MERCHANT, asset, amount, 2000, bytes32(uint256(7)));
    }

    function list(bytes32 id) private pure returns (bytes32[] memory ids) {
        ids = new bytes32[](1);
        ids[0] = id;
    }

    function pay(Terms memory t) private {
        vm.prank(payer);
        registry.pay(t);
    }

    function status(bytes32 id) private view returns (uint256) {
        return uint256(registry.statusOf(id));
    }

    function test_OnlyTheOperatorOpensAndCloses() public {
        vm.prank(payer);
        vm.expectRevert();
        registry.open(list(0));
        vm.prank(payer);
        vm.expectRevert();
        registry.close(list(0), 0);
    }

    function test_OpenLogsEveryId() public {
        bytes32[] memory ids = new bytes32[](3);
        (ids[0], ids[1], ids[2]) = (bytes32(uint256(1)), bytes32(uint256(2)), bytes32(uint256(1)));
        vm.recordLogs();
        registry.open(ids);
        wantLogs(ids, keccak256("Opened(bytes32)"));
        eq(status(ids[0]), 0, "open stores something");
    }

    function wantLogs(bytes32[] memory ids, bytes32 topic) private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        eq(logs.length, ids.length, "the number of logs");
        for (uint256 i = 0; i < ids.length; ++i) {
            require(logs[i].topics[0] == topic && logs[i].topics[1] == ids[i], "another log");
        }
    }

    function testFuzz_CloseStoresUntilExpiry(uint64 time, uint64 expiresAt) public {
        vm.warp(time);
        bytes32 id = bytes32(uint256(9));
        vm.recordLogs();
        registry.close(list(id), expiresAt);
        wantLogs(list(id), keccak256("Closed(bytes32)"));
        eq(status(id), time <= expiresAt ? 2 : 0, "what close stores");
    }

    function test_CloseAtTheLastSecond() public {
        vm.warp(2000);
        registry.close(list(bytes32(uint256(9))), 2000);
        eq(status(bytes32(uint256(9))), 2, "it is not stored in the last second");
        vm.warp(2001);
        registry.close(list(bytes32(uint256(8))), 2000);
        eq(status(bytes32(uint256(8))), 0, "it is stored after expiry");
    }

    function test_CloseSkipsPaidAndClosed() public {
        Terms memory t = terms(address(token), 5);
        bytes32 id = registry.idOf(t);
        pay(t);
        vm.recordLogs();
        registry.close(list(id), 2000);
        eq(vm.getRecordedLogs().length, 0, "a paid invoice is closed");
        eq(status(id), 1, "it is not paid");
        registry.close(list(bytes32(uint256(3))), 2000);
        vm.recordLogs();
        registry.close(list(bytes32(uint256(3))), 2000);
        eq(vm.getRecordedLogs().length, 0, "a closed invoice is closed again");
    }

    function testFuzz_Pay(uint64 time, uint128 amount) public {
        uint256 due = within(amount, 0, 2e12);
        vm.warp(time);
        Terms memory t = terms(address(token), due);
        bytes32 id = registry.idOf(t);
        bool taken = due > 0 && due <= 1e12 && time <= 2000;
        vm.prank(payer);
        (bool ok,) = address(registry).call(abi.encodeCall(registry.pay, (t)));
        require(ok == taken, "the payment's outcome");
        eq(token.balanceOf(MERCHANT), taken ? due : 0, "what the merchant has");
        eq(status(id), taken ? 1 : 0, "what is stored");
        eq(token.balanceOf(address(registry)), 0, "the registry holds tokens");
    }

    function test_PayErrors() public {
        Terms memory t = terms(address(token), 5);
        bytes32 id = registry.idOf(t);
        vm.warp(2000);
        pay(t); // in the last second
        vm.prank(payer);
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.AlreadyPaid.selector, id));
        registry.pay(t);
        t.salt = bytes32(uint256(8));
        id = registry.idOf(t);
        vm.warp(2001);
        vm.prank(payer);
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.InvoiceExpired.selector, id, uint64(2000)));
        registry.pay(t);
        vm.warp(1000);
        registry.close(list(id), 2000);
        vm.prank(payer);
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.InvoiceClosed.selector, id));
        registry.pay(t);
        t.amount = 0;
        vm.prank(payer);
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.ZeroAmount.selector));
        registry.pay(t);
    }

    /// The merchant receives more than the amount due, or less, or loses tokens.
    function test_AnotherAmountArrives() public {
        odd.mint(MERCHANT, 100);
        wrong(2, 1, 0, 110);
        wrong(1, 1, 1, 106);
        wrong(1, 2, 0, 102);
        wrong(1, 1, -7, 98);
        wrong(0, 1, 0, 100);
    }

    function wrong(uint256 numerator, uint256 denominator, int256 extra, uint256 balanceAfter) private {
        odd.set(numerator, denominator, extra);
        Terms memory t = terms(address(odd), 5);
        vm.prank(payer);
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.WrongAmountReceived.selector, 100, balanceAfter, 5));
        registry.pay(t);
        eq(status(registry.idOf(t)), 0, "it counts as paid");
    }

    function test_PayWithPermit() public {
        Terms memory t = terms(address(token), 5);
        vm.prank(payer);
        token.approve(address(registry), 0);
        bytes32 hash =
            keccak256(abi.encode(token.PERMIT_TYPEHASH(), payer, address(registry), 5, token.nonces(payer), 3000));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(PAYER_KEY, keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), hash)));
        token.permit(payer, address(registry), 5, 3000, v, r, s); // somebody is faster
        vm.prank(payer);
        registry.payWithPermit(t, 3000, v, r, s);
        eq(token.balanceOf(MERCHANT), 5, "the merchant was not paid");
        t.salt = 0;
        vm.prank(payer);
        vm.expectRevert();
        registry.payWithPermit(t, 3000, v, r, s);
    }

    function test_PayWithAuthorization() public {
        Terms memory t = terms(address(token), 5);
        bytes32 id = registry.idOf(t);
        (uint8 v, bytes32 r, bytes32 s) = signTransfer(token.DOMAIN_SEPARATOR(), PAYER_KEY, payer, MERCHANT, 5, 3000, id);
        registry.payWithAuthorization(t, payer, 0, 3000, v, r, s);
        eq(token.balanceOf(MERCHANT), 5, "the merchant was not paid");
        vm.expectRevert(abi.encodeWithSelector(InvoiceRegistry.AlreadyPaid.selector, id));
        registry.payWithAuthorization(t, payer, 0, 3000, v, r, s);
    }

    function testFuzz_IdCommitsToEveryField(Terms memory a, Terms memory b) public view {
        bool same = keccak256(abi.encode(a)) == keccak256(abi.encode(b));
        require((registry.idOf(a) == registry.idOf(b)) == same, "two terms have one id");
        bytes32 id = keccak256(
            abi.encode(block.chainid, address(registry), a.merchant, a.token, a.amount, uint256(a.expiresAt), a.salt)
        );
        require(registry.idOf(a) == id, "the id is computed otherwise");
    }
}

/// @notice Calls the registry with a few invoices in any order.
contract RegistryHandler is Base {
    InvoiceRegistry public registry;
    TestUSDC public token;
    uint256 public constant INVOICES = 6;
    mapping(uint256 invoice => uint256) public paidTimes;
    mapping(uint256 invoice => bool) public closed;
    bool public late;
    bool public afterClose;
    uint256 public total;
    uint256 private time = 1000;

    constructor() {
        registry = new InvoiceRegistry(address(this), address(this));
        token = new TestUSDC(address(this));
        token.mint(address(this), type(uint128).max);
        token.approve(address(registry), type(uint256).max);
        vm.warp(time);
    }

    function termsOf(uint256 n) public view returns (Terms memory) {
        return Terms(MERCHANT, address(token), 10 + n, uint64(1000 + 20 * n), bytes32(n));
    }

    function wait(uint256 seconds_) external {
        time += within(seconds_, 0, 15);
        vm.warp(time);
    }

    function open(uint256 n) external {
        vm.warp(time);
        bytes32[] memory ids = new bytes32[](1);
        ids[0] = registry.idOf(termsOf(n % INVOICES));
        registry.open(ids);
    }

    function close(uint256 n, uint256 m) external {
        vm.warp(time);
        Terms memory a = termsOf(n % INVOICES);
        Terms memory b = termsOf(m % INVOICES);
        bytes32[] memory ids = new bytes32[](2);
        (ids[0], ids[1]) = (registry.idOf(a), registry.idOf(b));
        registry.close(ids, a.expiresAt > b.expiresAt ? a.expiresAt : b.expiresAt);
        closed[n % INVOICES] = true;
        closed[m % INVOICES] = true;
    }

    function pay(uint256 n) external {
        vm.warp(time);
        n %= INVOICES;
        Terms memory t = termsOf(n);
        try registry.pay(t) {
            ++paidTimes[n];
            total += t.amount;
            if (time > t.expiresAt) late = true;
            if (closed[n] && paidTimes[n] == 1) afterClose = true;
        } catch {}
    }
}

contract RegistryInvariants is Base {
    RegistryHandler private handler;

    function setUp() public {
        handler = new RegistryHandler();
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function invariant_EachIsPaidAtMostOnce() public view {
        for (uint256 n = 0; n < handler.INVOICES(); ++n) {
            require(handler.paidTimes(n) <= 1, "it is paid twice");
        }
    }

    function invariant_NeverLate() public view {
        require(!handler.late(), "a payment came late");
    }

    function invariant_NeverAfterClose() public view {
        require(!handler.afterClose(), "a payment came after close");
    }

    function invariant_MerchantHasWhatWasPaid() public view {
        require(handler.token().balanceOf(MERCHANT) == handler.total(), "the merchant has another amount");
        require(handler.token().balanceOf(address(handler.registry())) == 0, "the registry holds tokens");
    }
}
